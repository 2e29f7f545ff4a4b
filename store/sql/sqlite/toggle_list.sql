SELECT name, scope, value, reason, actor, until, changed_at
FROM toggle
WHERE until = 0 OR until > ?
ORDER BY name, scope
