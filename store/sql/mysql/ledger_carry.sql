-- Raises promised for the reshare that has this epoch, while nobody else can: the epoch before is fenced, and this one
-- is not live.
UPDATE ledger SET promised = promised + ?, changes = changes + ?
WHERE sku = ? AND epoch = ? AND live_epoch < epoch AND promised + ? <= total
