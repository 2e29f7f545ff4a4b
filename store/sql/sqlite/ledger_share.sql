SELECT epoch FROM ledger WHERE sku = ?
