SELECT buyer, SUM(qty)
FROM outbox INDEXED BY outbox_buyer
WHERE sku = ? AND closed_at IS NULL AND buyer IN (?)
GROUP BY buyer
