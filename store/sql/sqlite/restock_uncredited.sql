SELECT COALESCE(SUM(qty), 0) FROM restock WHERE sku = ? AND credited_at IS NULL
