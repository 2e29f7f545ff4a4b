INSERT INTO outbox (id, sku, buyer, qty, share, epoch, token, state, attempts, node, created_at, sent_at, expires_at,
                    closed_at, close_reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
