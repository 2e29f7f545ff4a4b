SELECT seq, order_id, sku, buyer, qty, share, taken, epoch
FROM restock FORCE INDEX (restock_open)
WHERE credited_at IS NULL AND seq > ? AND at <= ?
ORDER BY seq
LIMIT ?
