UPDATE ledger SET live_epoch = epoch, state = ?, progress_at = ? WHERE sku = ?
