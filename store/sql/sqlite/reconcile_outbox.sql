-- One statement, so that no settlement can come between the two rows of an order. The page is cut first; then each of
-- its rows costs one look at a primary key.
SELECT o.seq, o.id, o.buyer, o.qty, o.state, o.closed_at IS NOT NULL, r.state,
       COALESCE(r.sku = o.sku AND r.qty = o.qty, 0),
       r.id IS NULL AND EXISTS (SELECT 1 FROM dead_letter d WHERE d.order_id = o.id AND d.state = 'OPEN')
FROM (
    SELECT seq, id, sku, buyer, qty, state, closed_at
    FROM outbox NOT INDEXED
    WHERE sku = ? AND seq > ?
    ORDER BY seq
    LIMIT ?
) o
LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
ORDER BY o.seq
