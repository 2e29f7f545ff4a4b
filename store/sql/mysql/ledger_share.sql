-- Keeps promises out, lets other readers of decisions in. MariaDB does not know FOR SHARE.
SELECT epoch FROM ledger WHERE sku = ? LOCK IN SHARE MODE
