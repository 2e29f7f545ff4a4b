package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// figure is one query of figures.
type figure struct {
	query string
	args  []any
	into  []any
}

func figures(ctx context.Context, q querier, all ...figure) error {
	for _, f := range all {
		if err := q.QueryRowContext(ctx, f.query, f.args...).Scan(f.into...); err != nil {
			return err
		}
	}
	return nil
}

// frozen runs work in one snapshot that begins with the SKU's listing; sale.ErrNotFound.
func (db *DB) frozen(ctx context.Context, sku string, work func(*txn, sale.Listing) error) error {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return err
	}
	t := &txn{Conn: conn, dialect: db.dialect}
	defer t.close()
	if err := t.start(ctx, db.dialect.beginSnapshot...); err != nil {
		return err
	}
	l, err := db.listing(ctx, t, sku)
	if err != nil {
		return err
	}
	return work(t, l)
}

// Books counts a SKU's rows against its ledger in one snapshot; sale.ErrNotFound. Archived outbox rows count. It reads
// all of the SKU's outbox rows and the whole orders table: an audit, not a gauge.
func (db *DB) Books(ctx context.Context, sku string) (b sale.Books, err error) {
	err = db.frozen(ctx, sku, func(t *txn, l sale.Listing) error {
		b = sale.Books{Total: l.Ledger.Total, Promised: l.Ledger.Promised, Sold: l.Ledger.Sold}
		return figures(ctx, t,
			figure{db.sql.booksLive, []any{sku, sku}, []any{&b.LiveUnits, &b.LiveOrders}},
			figure{
				db.sql.booksOrders,
				[]any{sku},
				[]any{&b.Orders, &b.Unpaid, &b.Paid, &b.Closed, &b.PaidUnits},
			},
			figure{db.sql.booksMissing, []any{sku}, []any{&b.Missing}},
			figure{db.sql.booksStrangers, []any{sku}, []any{&b.Strangers}},
			figure{db.sql.booksOverLimit, []any{sku, l.Limit}, []any{&b.OverLimit}},
			figure{db.sql.restockUncredited, []any{sku}, []any{&b.Uncredited}},
		)
	})
	if err != nil {
		return sale.Books{}, fmt.Errorf("books of %s: %w", sku, err)
	}
	return b, nil
}

// CheckLedger sums the rows up in one snapshot; sale.ErrNotFound. It reads as much as Books.
func (db *DB) CheckLedger(ctx context.Context, sku string) (c sale.LedgerCheck, err error) {
	err = db.frozen(ctx, sku, func(t *txn, l sale.Listing) error {
		c, err = db.sumUp(ctx, t, sku, l.Ledger)
		return err
	})
	if err != nil {
		return sale.LedgerCheck{}, fmt.Errorf("check the ledger of %s: %w", sku, err)
	}
	return c, nil
}

// sumUp is only right while nothing of the SKU moves: in a snapshot, or with its ledger row held.
func (db *DB) sumUp(ctx context.Context, q querier, sku string, l sale.Ledger) (sale.LedgerCheck, error) {
	c := sale.LedgerCheck{Promised: l.Promised, Sold: l.Sold}
	var liveOrders, orders, unpaid, paid, closed int64
	err := figures(ctx, q,
		figure{db.sql.booksLive, []any{sku, sku}, []any{&c.LiveUnits, &liveOrders}},
		figure{db.sql.booksOrders, []any{sku}, []any{&orders, &unpaid, &paid, &closed, &c.PaidUnits}},
	)
	return c, err
}

// CorrectLedger sets promised and sold to what the rows say, and returns the check as it stands afterwards. The ledger
// row is held while the rows are summed up, which stops the SKU's promises: it is only taken when a look without it finds
// a difference. Rows that cannot be true, with more units live than the total or more paid than live, are left alone:
// the check does not agree then. sale.ErrNotFound.
func (db *DB) CorrectLedger(ctx context.Context, sku string) (c sale.LedgerCheck, err error) {
	if c, err = db.CheckLedger(ctx, sku); err != nil || c.Agrees() {
		return c, err
	}
	err = db.writing(ctx, func(t *txn) error {
		if _, err := db.lockLedger(ctx, t, sku); err != nil {
			return err
		}
		l, err := db.listing(ctx, t, sku)
		if err != nil {
			return err
		}
		if c, err = db.sumUp(ctx, t, sku, l.Ledger); err != nil {
			return err
		}
		if c.Agrees() || c.LiveUnits > l.Ledger.Total || c.PaidUnits > c.LiveUnits {
			return nil
		}
		moved := max(c.LiveUnits-c.Promised, c.Promised-c.LiveUnits)
		if _, err := t.exec(ctx, db.sql.ledgerCorrect, c.LiveUnits, c.PaidUnits, moved, sku); err != nil {
			return err
		}
		c.Promised, c.Sold = c.LiveUnits, c.PaidUnits
		return nil
	})
	if err != nil {
		return sale.LedgerCheck{}, fmt.Errorf("correct the ledger of %s: %w", sku, err)
	}
	return c, nil
}
