DELETE FROM toggle WHERE name = ? AND scope = ?
