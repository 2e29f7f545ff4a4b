INSERT INTO ledger (sku, epoch, live_epoch, laid_epoch, laid_gate, mode, state, progress_at, total, promised, sold)
VALUES (?, 0, 0, 0, '', ?, ?, 0, ?, 0, 0)
