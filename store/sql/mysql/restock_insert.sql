INSERT INTO restock (order_id, sku, buyer, qty, share, taken, epoch, reason, actor, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
