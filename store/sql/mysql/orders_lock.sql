-- No ORDER BY: with one, a partitioned table locks the first row of every partition before the second of any.
SELECT id, sku, buyer, qty, state, reason, accepted_at, expires_at
FROM orders FORCE INDEX (PRIMARY)
WHERE (buyer, id) IN ((?, ?))
FOR UPDATE
