-- sent_at alone is the index condition; the doubled waits filter what it finds.
SELECT seq
FROM outbox FORCE INDEX (outbox_sweep)
WHERE state = 1 AND sent_at <= ? AND sent_at + ? * (1 << LEAST(attempts, ?)) <= ?
ORDER BY sent_at
LIMIT ?
FOR UPDATE SKIP LOCKED
