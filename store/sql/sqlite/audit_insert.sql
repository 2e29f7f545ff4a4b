INSERT INTO audit (at, actor, role, action, target, detail, reason, status, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
