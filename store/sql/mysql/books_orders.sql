SELECT COUNT(*) FROM orders WHERE sku = ?
