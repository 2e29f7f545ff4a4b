SELECT COUNT(*) FROM dead_letter WHERE state = ? AND sku = ?
