SELECT MAX(version_id) FROM goose_db_version WHERE is_applied
