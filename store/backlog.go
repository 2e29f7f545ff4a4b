package store

import (
	"context"
	"fmt"
)

// CountUndelivered counts the accepted orders of all nodes that the broker does not have, and stops at limit.
func (db *DB) CountUndelivered(ctx context.Context, limit int64) (n int64, err error) {
	if err := db.read.QueryRowContext(ctx, db.sql.outboxUndelivered, limit).Scan(&n); err != nil {
		return 0, fmt.Errorf("count undelivered: %w", err)
	}
	return n, nil
}
