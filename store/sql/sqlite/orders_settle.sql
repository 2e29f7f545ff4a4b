UPDATE orders SET state = ?, reason = ? WHERE state = 1 AND (buyer, id) IN (VALUES (?, ?))
