SELECT state FROM sku WHERE id = ?
