UPDATE event SET claimed_at = ? WHERE seq IN (?)
