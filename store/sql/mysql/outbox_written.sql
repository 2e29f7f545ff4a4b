-- Rows that nobody needs to send again: the order is written, or an operator has its dead letter.
SELECT o.seq
FROM outbox o LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
WHERE o.seq IN (?)
  AND (r.id IS NOT NULL OR EXISTS (
      SELECT 1 FROM dead_letter d FORCE INDEX (dead_letter_order) WHERE d.order_id = o.id AND d.state = 'OPEN'
  ))
