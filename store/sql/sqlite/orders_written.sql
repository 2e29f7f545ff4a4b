-- Which of these orders have a row.
SELECT buyer, id
FROM orders
WHERE (buyer, id) IN (VALUES (?, ?))
