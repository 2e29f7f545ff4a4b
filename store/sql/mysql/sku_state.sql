UPDATE sku SET state = ? WHERE id = ?
