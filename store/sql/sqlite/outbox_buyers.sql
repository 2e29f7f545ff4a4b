SELECT DISTINCT buyer
FROM outbox INDEXED BY outbox_buyer
WHERE sku = ? AND buyer > ? AND closed_at IS NULL
ORDER BY buyer
LIMIT ?
