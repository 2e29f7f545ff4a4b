SELECT o.seq FROM outbox o JOIN orders r ON r.buyer = o.buyer AND r.id = o.id WHERE o.seq IN (?)
