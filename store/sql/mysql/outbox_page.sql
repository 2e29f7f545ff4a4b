-- In the order of the primary key: all pages together read the table once, without sorting.
SELECT seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason
FROM outbox FORCE INDEX (PRIMARY)
WHERE sku = ? AND seq > ?
ORDER BY seq
LIMIT ?
