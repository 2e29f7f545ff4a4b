UPDATE outbox SET attempts = attempts + 1, sent_at = ?, node = ? WHERE seq IN (?)
