UPDATE orders FORCE INDEX (PRIMARY) SET state = ?, reason = ? WHERE state = 1 AND (buyer, id) IN ((?, ?))
