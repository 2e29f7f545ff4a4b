INSERT INTO dead_letter (message_id, sku, order_id, error, source, content_type, body, state, attempts, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?)
