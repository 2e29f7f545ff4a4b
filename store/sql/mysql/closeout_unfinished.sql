SELECT COALESCE(SUM(CASE WHEN o.closed_at IS NULL AND r.id IS NULL THEN 1 ELSE 0 END), 0),
       COALESCE(SUM(CASE WHEN r.state = 1 THEN 1 ELSE 0 END), 0),
       COALESCE(SUM(CASE WHEN (o.closed_at IS NULL AND r.state = 3)
                           OR (o.closed_at IS NOT NULL AND (r.id IS NULL OR r.state <> 3)) THEN 1 ELSE 0 END), 0)
FROM outbox o LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
WHERE o.sku = ?
