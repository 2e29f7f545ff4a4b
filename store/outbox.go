package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"stockade/biz/sale"
)

// maxDoublings caps how far the wait of a row that keeps being sent in vain grows: 64 times the first one.
const maxDoublings = 6

// MarkSent moves rows from NEW to SENT; others are left alone. More than 500 ids take several transactions.
func (db *DB) MarkSent(ctx context.Context, ids []sale.OrderID) error {
	// In the order of the index, so that two callers cannot lock each other's rows.
	sorted := slices.SortedFunc(slices.Values(ids), compareIDs)
	for _, part := range parts(sorted, maxRows) {
		err := db.writing(ctx, func(t *txn) error {
			arg := append([]any{millis(db.clock.now())}, idArgs(part)...)
			_, err := t.exec(ctx, inList(db.sql.outboxMarkSent, len(part)), arg...)
			return err
		})
		if err != nil {
			return fmt.Errorf("mark sent: %w", err)
		}
	}
	return nil
}

// ClaimNew takes at most limit (and at most 500) NEW rows that were written or last claimed at least olderThan ago,
// oldest first, and stamps them with this node and the time, so that no other claimer gets them for olderThan. The
// orders come back as QUEUED. After an error some may be stamped all the same: they come again.
func (db *DB) ClaimNew(ctx context.Context, olderThan time.Duration, limit int) (claimed []sale.Order, err error) {
	err = db.writing(ctx, func(t *txn) error {
		found, err := records(ctx, t, db.sql.outboxNew, db.ago(olderThan), min(limit, maxRows))
		if err != nil {
			return err
		}
		claimed = make([]sale.Order, len(found))
		if len(found) == 0 {
			return nil
		}
		arg := []any{millis(db.clock.now()), db.node}
		for i, r := range found {
			claimed[i] = r.order
			claimed[i].State, claimed[i].Reason = sale.OrderQueued, ""
			arg = append(arg, r.seq)
		}
		_, err = t.exec(ctx, inList(db.sql.outboxClaim, len(found)), arg...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim new: %w", err)
	}
	return claimed, nil
}

// RecheckSent looks after at most limit (and at most 500) rows that are SENT for longer than olderThan, doubled with
// each time the row was claimed: rows whose order row exists become DONE, the others NEW again, for the next ClaimNew of
// whatever age.
func (db *DB) RecheckSent(ctx context.Context, olderThan time.Duration, limit int) (done, renewed int, err error) {
	err = db.writing(ctx, func(t *txn) error {
		now := millis(db.clock.now())
		age := olderThan.Milliseconds()
		overdue, err := seqs(ctx, t, db.sql.outboxOverdue, now-age, age, maxDoublings, now, min(limit, maxRows))
		if err != nil || len(overdue) == 0 {
			return err
		}
		written, err := seqs(ctx, t, inList(db.sql.outboxWritten, len(overdue)), asArgs(overdue)...)
		if err != nil {
			return err
		}
		lost := slices.DeleteFunc(overdue, func(seq int64) bool { return slices.Contains(written, seq) })
		done, renewed = len(written), len(lost)
		for _, change := range []struct {
			query string
			rows  []int64
		}{{db.sql.outboxDone, written}, {db.sql.outboxRenew, lost}} {
			if len(change.rows) == 0 {
				continue
			}
			if _, err := t.exec(ctx, inList(change.query, len(change.rows)), asArgs(change.rows)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("recheck sent: %w", err)
	}
	return done, renewed, nil
}

// RenewAll makes every row that is not DONE a NEW one that is due at once, and tells how many: for a start with a broker
// that has forgotten what it was told, when no other process relays these rows.
func (db *DB) RenewAll(ctx context.Context) (int, error) {
	var n int64
	err := db.writing(ctx, func(t *txn) (err error) {
		n, err = t.exec(ctx, db.sql.outboxRenewAll)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("renew all: %w", err)
	}
	return int(n), nil
}

func seqs(ctx context.Context, q querier, query string, arg ...any) ([]int64, error) {
	return collect(ctx, q, func(rows *sql.Rows) (seq int64, err error) {
		return seq, rows.Scan(&seq)
	}, query, arg...)
}
