INSERT INTO event (topic, body, created_at, claimed_at) VALUES (?, ?, ?, ?)
