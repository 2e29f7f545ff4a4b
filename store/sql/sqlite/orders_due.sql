-- Rows that no settlement can expire, because no live outbox row of the same buyer stands behind them, are left to the
-- reconciliation: at the head of this list they would keep the others waiting for ever.
SELECT o.id
FROM orders o INDEXED BY orders_expiry CROSS JOIN outbox b ON b.id = o.id
WHERE o.state = 1 AND o.expires_at <= ? AND b.buyer = o.buyer AND b.closed_at IS NULL
ORDER BY o.expires_at
LIMIT ?
