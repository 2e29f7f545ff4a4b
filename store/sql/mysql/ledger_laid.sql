UPDATE ledger
SET laid_epoch = epoch, laid_gate = ?, laid_slots = (SELECT slots FROM sku WHERE id = ledger.sku)
WHERE sku = ?
