SELECT r.buyer, r.id, r.qty, r.state, r.mine, COALESCE(o.state, 2), COALESCE(o.closed_at, a.closed_at) IS NOT NULL,
       o.id IS NOT NULL OR a.id IS NOT NULL,
       COALESCE(COALESCE(o.buyer, a.buyer) = r.buyer AND COALESCE(o.sku, a.sku) = r.sku, 0)
FROM (
    SELECT buyer, id, sku, qty, state, sku = ? AS mine
    FROM orders
    WHERE buyer > ? OR (buyer = ? AND id > ?)
    ORDER BY buyer, id
    LIMIT ?
) r
LEFT JOIN outbox o ON r.mine AND o.id = r.id
LEFT JOIN outbox_archive a ON r.mine AND o.id IS NULL AND a.id = r.id
ORDER BY r.buyer, r.id
