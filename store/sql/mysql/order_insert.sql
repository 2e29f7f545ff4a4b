INSERT INTO orders (buyer, id, sku, qty, state, accepted_at, expires_at, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
