SELECT seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason
FROM outbox_archive
WHERE id IN (?)
