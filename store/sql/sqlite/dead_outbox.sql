-- The row of a letter's order that nobody looks after: not closed, and DONE.
SELECT o.seq
FROM dead_letter d JOIN outbox o ON o.id = d.order_id
WHERE d.seq = ? AND o.state = 2 AND o.closed_at IS NULL
