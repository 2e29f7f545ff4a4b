INSERT INTO audit (at, actor, action, target, detail) VALUES (?, ?, ?, ?, ?)
