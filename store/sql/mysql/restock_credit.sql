UPDATE restock FORCE INDEX (restock_order) SET credited_at = ? WHERE credited_at IS NULL AND order_id IN (?)
