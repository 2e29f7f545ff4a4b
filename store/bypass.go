package store

import (
	"context"
	"database/sql"
	"errors"

	"stockade/biz/sale"
)

// BypassGate makes mode mysql live under a new epoch, in one commit that touches no share: takes admitted before it are
// fenced, and so is a reshare that is under way. It does nothing where mode mysql is live already. *sale.StateError for
// a SKU that was never loaded, sale.ErrNotFound.
func (db *DB) BypassGate(ctx context.Context, sku string) error {
	return db.writing(ctx, func(t *txn) error {
		l, err := db.lockLedger(ctx, t, sku)
		if err != nil {
			return err
		}
		if l.LiveEpoch == 0 {
			state, err := db.lockSKU(ctx, t, sku)
			if err != nil {
				return err
			}
			return &sale.StateError{SKU: sku, State: state, Want: "go without the gate before it was loaded"}
		}
		if l.Mode == sale.ModeMySQL && l.Live() {
			return nil
		}
		// The numbers are given: MySQL and SQLite disagree about what "epoch" means behind "epoch = epoch + 1".
		next := l.Epoch + 1
		_, err = t.exec(ctx, db.sql.ledgerBypass, next, next, sale.ModeMySQL, sale.Steady, millis(db.clock.now()), sku)
		return err
	})
}

// BuyersOf lists at most limit buyers who have, or had, an order of a SKU, each once, in the order of their ids, after the
// given one; "" starts at the beginning. Closed orders count, because their buyers may ask for them again too.
func (db *DB) BuyersOf(ctx context.Context, sku, after string, limit int) ([]string, error) {
	return collect(ctx, db.read, func(rows *sql.Rows) (buyer string, err error) {
		return buyer, rows.Scan(&buyer)
	}, db.sql.outboxBuyers, sku, after, limit)
}

// scanOne reads the one row of a query; sale.ErrNotFound when there is none.
func scanOne(ctx context.Context, q querier, into []any, query string, args ...any) error {
	err := q.QueryRowContext(ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return sale.ErrNotFound
	}
	return err
}
