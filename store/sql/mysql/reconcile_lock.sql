SELECT state FROM outbox WHERE id = ? FOR UPDATE
