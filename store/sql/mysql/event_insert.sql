INSERT INTO event (topic, payment, body, created_at, claimed_at) VALUES (?, ?, ?, ?, ?)
