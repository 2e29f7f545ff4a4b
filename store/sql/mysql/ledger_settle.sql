UPDATE ledger SET promised = promised - ?, changes = changes + ?, sold = sold + ? WHERE sku = ?
