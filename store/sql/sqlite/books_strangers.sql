SELECT COUNT(*)
FROM orders r LEFT JOIN outbox o ON o.id = r.id AND o.buyer = r.buyer AND o.sku = r.sku
WHERE r.sku = ? AND o.id IS NULL
