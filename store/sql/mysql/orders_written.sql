-- Which of these orders have a row. Nothing is locked.
SELECT buyer, id
FROM orders FORCE INDEX (PRIMARY)
WHERE (buyer, id) IN ((?, ?))
