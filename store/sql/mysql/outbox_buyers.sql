SELECT DISTINCT buyer
FROM outbox FORCE INDEX (outbox_buyer)
WHERE sku = ? AND buyer > ? AND closed_at IS NULL
ORDER BY buyer
LIMIT ?
