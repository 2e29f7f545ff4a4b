-- Accepted orders that the broker does not have: NEW (0). SENT rows do not count, for they stay so until they are looked into,
-- minutes after their orders were written. At most so many are counted, from the index alone: the answer must not cost more
-- the worse things are.
SELECT COUNT(*) FROM (SELECT 1 FROM outbox INDEXED BY outbox_sweep WHERE state = 0 LIMIT ?) w
