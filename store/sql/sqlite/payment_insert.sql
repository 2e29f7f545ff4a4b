INSERT INTO payment (id, order_id, outcome, at) VALUES (?, ?, ?, ?)
