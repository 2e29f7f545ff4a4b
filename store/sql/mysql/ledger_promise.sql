-- Raises promised only where the units exist and the take's epoch is live, and holds the row until COMMIT.
UPDATE ledger SET promised = promised + ?, changes = changes + ?
WHERE sku = ? AND live_epoch = ? AND epoch = live_epoch AND mode = ? AND promised + ? <= total
