SELECT seq
FROM outbox INDEXED BY outbox_sweep
WHERE state = 1 AND sent_at <= ? AND sent_at + ? * (1 << MIN(attempts, ?)) <= ?
ORDER BY sent_at
LIMIT ?
