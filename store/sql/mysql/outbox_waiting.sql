-- At most so many are counted: the answer must not cost more the worse things are.
SELECT COUNT(*), COALESCE(MIN(created_at), 0)
FROM (SELECT created_at FROM outbox FORCE INDEX (outbox_sweep) WHERE state = 0 ORDER BY sent_at LIMIT ?) w
