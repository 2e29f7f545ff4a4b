UPDATE ledger SET laid_epoch = epoch, laid_gate = ? WHERE sku = ?
