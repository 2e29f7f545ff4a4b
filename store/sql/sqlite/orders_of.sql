SELECT id, sku, buyer, qty, state, reason, accepted_at, expires_at
FROM orders
WHERE buyer = ? AND id > ?
ORDER BY id
LIMIT ?
