package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Unfinished counts in one snapshot what keeps a SKU from being closed out; sale.ErrNotFound. It reads all of the SKU's
// outbox rows with their order rows.
func (db *DB) Unfinished(ctx context.Context, sku string) (u sale.Unfinished, err error) {
	err = db.frozen(ctx, sku, func(t *txn, _ sale.Listing) error {
		return figures(ctx, t,
			figure{db.sql.closeoutUnfinished, []any{sku}, []any{&u.Queued, &u.Unpaid, &u.Differ}},
			figure{db.sql.closeoutUncredited, []any{sku}, []any{&u.Uncredited}},
			figure{db.sql.deadOpen, []any{sale.DeadOpen, sku}, []any{&u.DeadOpen}},
		)
	})
	if err != nil {
		return sale.Unfinished{}, fmt.Errorf("unfinished of %s: %w", sku, err)
	}
	return u, nil
}

// CloseOut keeps the report and moves the SKU from CLOSED to CLOSED_OUT, in one transaction. A live epoch ends with it:
// whoever still tries to promise is fenced. *sale.StateError when the SKU is in another state, sale.ErrConflict when
// units are promised and not paid, as by a promise that came after the report was made, sale.ErrNotFound.
func (db *DB) CloseOut(ctx context.Context, sku string, report []byte) error {
	return db.writing(ctx, func(t *txn) error {
		if _, err := db.lockLedger(ctx, t, sku); err != nil {
			return err
		}
		if err := db.lockState(ctx, t, sku, sale.Closed, "close out"); err != nil {
			return err
		}
		l, err := db.listing(ctx, t, sku)
		if err != nil {
			return err
		}
		if l.Ledger.Promised != l.Ledger.Sold {
			return fmt.Errorf("sku %s: %d units are promised, %d are paid: %w", sku, l.Ledger.Promised, l.Ledger.Sold,
				sale.ErrConflict)
		}
		if l.Ledger.Live() {
			if err := db.fence(ctx, t, l); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, db.sql.closeoutInsert, sku, report, millis(db.clock.now())); err != nil {
			return err
		}
		_, err = t.exec(ctx, db.sql.skuState, sale.ClosedOut, sku)
		return err
	})
}

// fence raises the epoch of a ledger that nothing makes live again.
func (db *DB) fence(ctx context.Context, t *txn, l sale.Listing) error {
	_, err := t.exec(ctx, db.sql.ledgerRaise,
		l.Ledger.Total, l.Ledger.Mode, l.Ledger.LaidSlots, sale.Steady, millis(db.clock.now()), l.ID)
	return err
}

// lockState holds the SKU's row; *sale.StateError unless it is in that state.
func (db *DB) lockState(ctx context.Context, t *txn, sku string, state sale.SKUState, want string) error {
	is, err := db.lockSKU(ctx, t, sku)
	if err != nil {
		return err
	}
	if is != state {
		return &sale.StateError{SKU: sku, State: is, Want: want}
	}
	return nil
}

// CloseoutReport reads the report; sale.ErrNotFound.
func (db *DB) CloseoutReport(ctx context.Context, sku string) (report []byte, err error) {
	err = scanOne(ctx, db.read, []any{&report}, db.sql.closeoutReport, sku)
	return report, err
}

// Archive moves at most limit (and at most 500) outbox rows of a CLOSED_OUT SKU into the archive and tells how many;
// none when nothing is left. Orders are read from their order rows then; a purchase that repeats an archived order's key
// finds no outbox row any more. *sale.StateError for a SKU in another state, sale.ErrNotFound.
func (db *DB) Archive(ctx context.Context, sku string, limit int) (n int, err error) {
	err = db.writing(ctx, func(t *txn) error {
		n = 0
		if err := db.lockState(ctx, t, sku, sale.ClosedOut, "archive its outbox rows"); err != nil {
			return err
		}
		page, err := seqs(ctx, t, db.sql.archivePage, sku, min(limit, maxRows))
		if err != nil || len(page) == 0 {
			return err
		}
		for _, query := range []string{db.sql.archiveCopy, db.sql.archiveDelete} {
			if _, err := t.exec(ctx, inList(query, len(page)), asArgs(page)...); err != nil {
				return err
			}
		}
		n = len(page)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", sku, err)
	}
	return n, nil
}
