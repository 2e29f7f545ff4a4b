INSERT INTO orders (buyer, id, sku, qty, state, reason, accepted_at, expires_at, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
