UPDATE dead_letter
SET state = ?, attempts = attempts + 1, error = ?, source = ?, content_type = ?, body = ?, handled_at = 0, handled_by = ''
WHERE message_id = ? AND state = ?
