UPDATE outbox SET state = 0, sent_at = 0 WHERE state IN (0, 1)
