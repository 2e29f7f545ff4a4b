-- The server's clock, Unix milliseconds.
SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)
