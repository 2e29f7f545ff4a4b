-- sent_at 0 is older than any age that a sweeper asks for.
UPDATE outbox SET state = 0, sent_at = 0 WHERE seq IN (?)
