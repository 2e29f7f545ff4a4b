-- Until this transaction ends, no promise, reshare or closing of the SKU can move.
SELECT epoch, live_epoch, mode, state, total, promised FROM ledger WHERE sku = ? FOR UPDATE
