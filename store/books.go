package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Books counts a SKU's rows against its ledger in one snapshot; sale.ErrNotFound. It reads all of the SKU's outbox rows
// and the whole orders table: an audit, not a gauge.
func (db *DB) Books(ctx context.Context, sku string) (b sale.Books, err error) {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return b, err
	}
	t := &txn{Conn: conn, dialect: db.dialect}
	defer t.close()
	if err := t.start(ctx, db.dialect.beginSnapshot...); err != nil {
		return b, err
	}
	l, err := db.listing(ctx, t, sku)
	if err != nil {
		return b, err
	}
	b.Total, b.Promised = l.Ledger.Total, l.Ledger.Promised
	for _, figure := range []struct {
		query string
		args  []any
		into  []any
	}{
		{db.sql.booksLive, []any{sku}, []any{&b.LiveUnits, &b.LiveOrders}},
		{db.sql.booksOrders, []any{sku}, []any{&b.Orders}},
		{db.sql.booksMissing, []any{sku}, []any{&b.Missing}},
		{db.sql.booksStrangers, []any{sku}, []any{&b.Strangers}},
		{db.sql.booksOverLimit, []any{sku, l.Limit}, []any{&b.OverLimit}},
	} {
		if err := t.QueryRowContext(ctx, figure.query, figure.args...).Scan(figure.into...); err != nil {
			return b, fmt.Errorf("books: %w", err)
		}
	}
	return b, nil
}
