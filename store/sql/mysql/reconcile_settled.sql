SELECT EXISTS (SELECT 1 FROM dead_letter WHERE order_id = ? AND state = ?),
       EXISTS (SELECT 1 FROM restock WHERE order_id = ?)
