SELECT seq FROM dead_letter WHERE message_id = ?
