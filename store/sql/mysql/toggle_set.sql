-- Neither database's own way to say "insert or update" is known to the other.
REPLACE INTO toggle (name, scope, value, reason, actor, until, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?)
