INSERT INTO outbox_archive
    (seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason)
SELECT seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason
FROM outbox
WHERE seq IN (?)
