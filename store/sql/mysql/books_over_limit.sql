SELECT COUNT(*)
FROM (SELECT buyer FROM outbox WHERE sku = ? AND closed_at IS NULL GROUP BY buyer HAVING SUM(qty) > ?) b
