DELETE FROM outbox WHERE seq IN (?)
