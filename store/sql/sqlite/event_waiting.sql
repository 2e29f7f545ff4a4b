SELECT seq, topic, payment, body FROM event WHERE claimed_at <= ? ORDER BY seq LIMIT ?
