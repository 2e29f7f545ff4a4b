SELECT COALESCE(SUM(units), 0), COALESCE(SUM(n), 0)
FROM (
    SELECT SUM(qty) AS units, COUNT(*) AS n FROM outbox WHERE sku = ? AND closed_at IS NULL
    UNION ALL
    SELECT SUM(qty), COUNT(*) FROM outbox_archive WHERE sku = ? AND closed_at IS NULL
) b
