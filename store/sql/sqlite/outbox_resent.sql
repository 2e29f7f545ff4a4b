UPDATE outbox SET state = 1, sent_at = ? WHERE seq IN (?)
