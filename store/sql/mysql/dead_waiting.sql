SELECT COUNT(*) FROM (SELECT seq FROM dead_letter WHERE state = ? LIMIT ?) w
