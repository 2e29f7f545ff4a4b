UPDATE ledger SET epoch = ?, live_epoch = ?, mode = ?, state = ?, progress_at = ? WHERE sku = ?
