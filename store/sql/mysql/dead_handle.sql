UPDATE dead_letter SET state = ?, handled_at = ?, handled_by = ? WHERE seq = ? AND state = ?
