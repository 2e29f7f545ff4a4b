SELECT COUNT(*)
FROM orders r
LEFT JOIN outbox o ON o.id = r.id AND o.buyer = r.buyer AND o.sku = r.sku
LEFT JOIN outbox_archive a
  ON o.id IS NULL AND a.id = r.id AND a.buyer = r.buyer AND a.sku = r.sku
WHERE r.sku = ? AND o.id IS NULL AND a.id IS NULL
