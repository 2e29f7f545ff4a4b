SELECT sku, epoch FROM ledger WHERE sku IN (?)
