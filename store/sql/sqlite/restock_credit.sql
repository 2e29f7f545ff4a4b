UPDATE restock SET credited_at = ? WHERE credited_at IS NULL AND order_id IN (?)
