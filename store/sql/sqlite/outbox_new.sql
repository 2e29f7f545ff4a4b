SELECT seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason
FROM outbox INDEXED BY outbox_sweep
WHERE state = 0 AND sent_at <= ?
ORDER BY sent_at
LIMIT ?
