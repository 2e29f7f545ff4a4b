SELECT DISTINCT buyer
FROM outbox INDEXED BY outbox_buyer
WHERE sku = ? AND buyer > ?
ORDER BY buyer
LIMIT ?
