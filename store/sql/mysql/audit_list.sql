SELECT seq, at, actor, role, action, target, detail, reason, status, request_id
FROM audit
WHERE seq < ? AND (? = '' OR actor = ?) AND (? = '' OR action = ?) AND (? = '' OR target = ?)
ORDER BY seq DESC
LIMIT ?
