UPDATE outbox SET state = 2 WHERE seq IN (?)
