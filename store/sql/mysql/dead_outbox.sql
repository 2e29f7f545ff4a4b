-- The row of a letter's order that nobody looks after: not closed, and DONE. Locked, because a recheck that saw the letter
-- OPEN may be about to make it DONE.
SELECT o.seq
FROM dead_letter d JOIN outbox o ON o.id = d.order_id
WHERE d.seq = ? AND o.state = 2 AND o.closed_at IS NULL
FOR UPDATE
