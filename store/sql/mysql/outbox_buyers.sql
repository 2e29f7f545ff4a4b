SELECT DISTINCT buyer
FROM outbox FORCE INDEX (outbox_buyer)
WHERE sku = ? AND buyer > ?
ORDER BY buyer
LIMIT ?
