SELECT state FROM outbox WHERE id = ?
