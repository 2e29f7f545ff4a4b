SHOW GLOBAL VARIABLES
WHERE Variable_name IN
    ('innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'max_connections', 'max_allowed_packet')
