UPDATE ledger SET promised = ?, sold = ?, changes = changes + ? WHERE sku = ?
