-- BEGIN IMMEDIATE has locked the whole file already.
SELECT epoch, live_epoch, mode, state, total, promised FROM ledger WHERE sku = ?
