-- There is no server.
SELECT 'Threads_connected', '0' WHERE 1 = 0
