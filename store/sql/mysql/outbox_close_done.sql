-- Its order row is written by the same transaction: nobody needs to be told of the order any more.
UPDATE outbox FORCE INDEX (outbox_id) SET state = 2, closed_at = ?, close_reason = ?
WHERE closed_at IS NULL AND id IN (?)
