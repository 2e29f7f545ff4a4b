-- The index is named because more than 200 buyers make the optimizer guess from statistics, and for a hot SKU it may
-- guess a scan.
SELECT buyer, CAST(SUM(qty) AS SIGNED)
FROM outbox FORCE INDEX (outbox_buyer)
WHERE sku = ? AND closed_at IS NULL AND buyer IN (?)
GROUP BY buyer
