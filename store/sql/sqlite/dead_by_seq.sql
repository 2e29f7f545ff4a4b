SELECT seq, message_id, sku, order_id, error, source, content_type, body, state, attempts, at, handled_at, handled_by
FROM dead_letter
WHERE seq = ?
