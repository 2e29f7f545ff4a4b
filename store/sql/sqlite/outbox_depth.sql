SELECT COUNT(*) FROM outbox WHERE state = ?
