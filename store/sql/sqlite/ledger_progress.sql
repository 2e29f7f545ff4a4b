UPDATE ledger SET progress_at = ? WHERE sku = ?
