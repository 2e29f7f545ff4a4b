SELECT id, order_id, outcome FROM payment WHERE id IN (?)
