UPDATE sku SET slots = ? WHERE id = ?
