UPDATE outbox FORCE INDEX (outbox_id) SET state = 1, sent_at = ? WHERE state = 0 AND id IN (?)
