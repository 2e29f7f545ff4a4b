SELECT COUNT(*) FROM restock WHERE sku = ? AND credited_at IS NULL
