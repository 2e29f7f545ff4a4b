UPDATE ledger SET epoch = epoch + 1, total = ?, mode = ?, laid_slots = ?, state = ?, progress_at = ? WHERE sku = ?
