SHOW GLOBAL STATUS WHERE Variable_name = 'Threads_connected'
