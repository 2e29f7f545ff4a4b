package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"stockade/biz/sale"
)

// Due lists at most limit CREATED orders whose payment window has ended by the clock of the database, those that ended
// first coming first. Orders that no settlement can expire, because their rows disagree, are not among them.
func (db *DB) Due(ctx context.Context, limit int) ([]sale.OrderID, error) {
	due, err := collect(ctx, db.settling, func(rows *sql.Rows) (id sale.OrderID, err error) {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return id, err
		}
		return orderID(raw)
	}, db.sql.ordersDue, millis(db.clock.now()), limit)
	if err != nil {
		return nil, fmt.Errorf("due orders: %w", err)
	}
	return due, nil
}

// Restocks lists at most limit restocks that the gate has not got, of an age of at least that, after the given seq.
// Restocks that are being committed may appear behind a seq that was passed: start at 0 again when the list ends.
func (db *DB) Restocks(ctx context.Context, age time.Duration, after int64, limit int) ([]sale.Restock, error) {
	waiting, err := collect(ctx, db.settling, func(rows *sql.Rows) (r sale.Restock, err error) {
		var id []byte
		err = rows.Scan(&r.Seq, &id, &r.SKU, &r.Buyer, &r.Quantity, &r.Share, &r.Taken, &r.Epoch)
		if err != nil {
			return r, err
		}
		r.Order, err = orderID(id)
		return r, err
	}, db.sql.restockWaiting, after, db.ago(age), limit)
	if err != nil {
		return nil, fmt.Errorf("restocks: %w", err)
	}
	return waiting, nil
}

// Credited notes that the gate has, or does not need, these restocks; ids without one, and repetitions, are ignored.
// More than 500 ids take several transactions.
func (db *DB) Credited(ctx context.Context, ids []sale.OrderID) error {
	sorted := slices.SortedFunc(slices.Values(ids), compareIDs)
	for _, part := range parts(sorted, maxRows) {
		err := db.writingOn(ctx, db.settling, func(t *txn) error {
			args := append([]any{millis(db.clock.now())}, idArgs(part)...)
			_, err := t.exec(ctx, inList(db.sql.restockCredit, len(part)), args...)
			return err
		})
		if err != nil {
			return fmt.Errorf("credited: %w", err)
		}
	}
	return nil
}

// Uncredited sums the units of closed orders of a SKU that the gate has not got back.
func (db *DB) Uncredited(ctx context.Context, sku string) (units int64, err error) {
	if err := db.read.QueryRowContext(ctx, db.sql.restockUncredited, sku).Scan(&units); err != nil {
		return 0, fmt.Errorf("uncredited: %w", err)
	}
	return units, nil
}
