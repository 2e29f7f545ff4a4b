UPDATE ledger SET epoch = epoch + 1, total = ?, state = ?, progress_at = ? WHERE sku = ?
