-- BEGIN IMMEDIATE has locked the whole file already.
SELECT id, sku, buyer, qty, state, reason, accepted_at, expires_at
FROM orders
WHERE (buyer, id) IN (VALUES (?, ?))
