package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// States of an outbox row; the SQL texts name them by number.
const (
	outboxNew  = 0
	outboxSent = 1
	outboxDone = 2
)

// States of an orders row.
const (
	orderCreated = 1
	orderPaid    = 2
	orderClosed  = 3
)

// record is one outbox row.
type record struct {
	seq   int64
	order sale.Order
	share sale.Share
	token sale.Token
}

func (r record) holding() sale.Holding {
	return sale.Holding{
		Seq: r.seq, Order: r.order.ID, Buyer: r.order.Buyer, Quantity: r.order.Quantity,
		Share: r.share, Token: r.token, Closed: r.order.State == sale.OrderClosed,
	}
}

// records reads outbox rows; the columns are the same in every statement that selects whole rows.
func records(ctx context.Context, q querier, query string, args ...any) ([]record, error) {
	return collect(ctx, q, func(rows *sql.Rows) (r record, err error) {
		var id []byte
		var created, expires int64
		var closed sql.NullInt64
		var reason string
		err = rows.Scan(&r.seq, &id, &r.order.SKU, &r.order.Buyer, &r.order.Quantity, &r.share, &r.token.Epoch,
			&r.token.Change, &created, &expires, &closed, &reason)
		if err != nil {
			return r, err
		}
		r.order.State = sale.OrderQueued
		if closed.Valid {
			r.order.State, r.order.Reason = sale.OrderClosed, sale.Reason(reason)
		}
		r.order.AcceptedAt, r.order.ExpiresAt = fromMillis(created), fromMillis(expires)
		r.order.ID, err = orderID(id)
		return r, err
	}, query, args...)
}

// recordsByID looks ids up, at most maxRows in one query.
func (db *DB) recordsByID(ctx context.Context, q querier, ids []sale.OrderID) (map[sale.OrderID]record, error) {
	return db.recordsFrom(ctx, q, db.sql.outboxByIDs, ids)
}

// recordsFrom is recordsByID with another statement.
func (db *DB) recordsFrom(
	ctx context.Context, q querier, query string, ids []sale.OrderID,
) (map[sale.OrderID]record, error) {
	found := make(map[sale.OrderID]record, len(ids))
	for _, part := range parts(ids, maxRows) {
		rs, err := records(ctx, q, inList(query, len(part)), idArgs(part)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rs {
			found[r.order.ID] = r
		}
	}
	return found, nil
}

func orderRows(ctx context.Context, q querier, query string, args ...any) ([]sale.Order, error) {
	return collect(ctx, q, func(rows *sql.Rows) (o sale.Order, err error) {
		var id []byte
		var state int
		var accepted, expires int64
		err = rows.Scan(&id, &o.SKU, &o.Buyer, &o.Quantity, &state, &o.Reason, &accepted, &expires)
		if err != nil {
			return o, err
		}
		o.AcceptedAt, o.ExpiresAt = fromMillis(accepted), fromMillis(expires)
		if o.State, err = orderState(state); err != nil {
			return o, err
		}
		o.ID, err = orderID(id)
		return o, err
	}, query, args...)
}

func orderState(n int) (sale.OrderState, error) {
	switch n {
	case orderCreated:
		return sale.OrderCreated, nil
	case orderPaid:
		return sale.OrderPaid, nil
	case orderClosed:
		return sale.OrderClosed, nil
	}
	return "", fmt.Errorf("an order row has the unknown state %d", n)
}

// collect reads all rows of a query.
func collect[T any](
	ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any,
) (all []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func orderID(raw []byte) (id sale.OrderID, err error) {
	if len(raw) != len(id) {
		return id, fmt.Errorf("an order id of %d bytes", len(raw))
	}
	copy(id[:], raw)
	return id, nil
}

// idArgs and asArgs are lists as arguments of a statement.
func idArgs(ids []sale.OrderID) []any {
	all := make([]any, len(ids))
	for i := range ids {
		all[i] = ids[i][:]
	}
	return all
}

func asArgs[T any](of []T) []any {
	all := make([]any, len(of))
	for i, v := range of {
		all[i] = v
	}
	return all
}

// parts cuts a list into pieces of at most n.
func parts[T any](of []T, n int) [][]T {
	var all [][]T
	for len(of) > n {
		all, of = append(all, of[:n:n]), of[n:]
	}
	if len(of) > 0 {
		all = append(all, of)
	}
	return all
}

// ago is the row time of that long before now.
func (db *DB) ago(age time.Duration) int64 { return millis(db.clock.now()) - age.Milliseconds() }
