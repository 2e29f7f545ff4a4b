SELECT seq, order_id, sku, buyer, qty, share, taken, epoch
FROM restock INDEXED BY restock_open
WHERE credited_at IS NULL AND seq > ? AND at <= ?
ORDER BY seq
LIMIT ?
