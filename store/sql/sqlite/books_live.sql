SELECT COALESCE(SUM(qty), 0), COUNT(*) FROM outbox WHERE sku = ? AND closed_at IS NULL
