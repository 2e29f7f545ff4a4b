INSERT INTO closeout (sku, report, at) VALUES (?, ?, ?)
