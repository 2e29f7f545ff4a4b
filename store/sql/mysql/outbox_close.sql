UPDATE outbox FORCE INDEX (outbox_id) SET closed_at = ?, close_reason = ? WHERE closed_at IS NULL AND id IN (?)
