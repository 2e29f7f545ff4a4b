SELECT COUNT(*)
FROM outbox o LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
WHERE o.sku = ? AND o.closed_at IS NULL AND r.id IS NULL
