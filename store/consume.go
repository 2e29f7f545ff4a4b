package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stockade/biz/sale"
)

// InsertOrders writes a CREATED row for each order and one order.created notice about them, in one transaction. An
// order whose row exists is done, and not announced again.
//
// refused is nil, or has one entry per order: not nil where the database refuses that order's data, which no repetition
// will change; the others are written. err is trouble with the database: nothing is known to be written, and the call
// may be repeated.
func (db *DB) InsertOrders(ctx context.Context, orders []sale.Order) (refused []error, err error) {
	if len(orders) == 0 {
		return nil, nil
	}
	// Primary key order, so that two consumers with the same orders cannot deadlock.
	at := make([]int, len(orders))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return compareKeys(orders[a], orders[b]) })
	sorted := make([]sale.Order, len(orders))
	for i, from := range at {
		sorted[i] = orders[from]
	}

	err = db.writing(ctx, func(t *txn) error { return db.insertAll(ctx, t, sorted) })
	if kind := db.dialect.classify(err); kind != errDuplicate && kind != errData {
		return nil, wrapInsert(err)
	}
	err = db.writing(ctx, func(t *txn) error {
		refused = nil
		why, err := db.insertEach(ctx, t, sorted)
		if err != nil || why == nil {
			return err
		}
		refused = make([]error, len(orders))
		for i, reason := range why {
			refused[at[i]] = reason
		}
		return nil
	})
	if err != nil {
		return nil, wrapInsert(err)
	}
	return refused, nil
}

// compareKeys sorts orders as the primary key of order rows does.
func compareKeys(a, b sale.Order) int {
	return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), compareIDs(a.ID, b.ID))
}

func wrapInsert(err error) error {
	if err != nil {
		return fmt.Errorf("insert orders: %w", err)
	}
	return nil
}

// insertAll is the common case: looking for existing rows first would cost many times the insert.
func (db *DB) insertAll(ctx context.Context, t *txn, orders []sale.Order) error {
	now := millis(db.clock.now())
	for _, part := range db.orderParts(orders) {
		values := make([]any, 0, 8*len(part))
		for i := range part {
			values = append(values, orderValues(&part[i], now)...)
		}
		if _, err := t.exec(ctx, bulk(db.sql.orderInsert, len(part)), values...); err != nil {
			return err
		}
	}
	return db.announce(ctx, t, orders)
}

// insertEach goes row by row. A statement that fails for its data undoes itself only; the transaction goes on.
func (db *DB) insertEach(ctx context.Context, t *txn, orders []sale.Order) (refused []error, err error) {
	now := millis(db.clock.now())
	var written []sale.Order
	for i := range orders {
		_, err := t.exec(ctx, db.sql.orderInsert, orderValues(&orders[i], now)...)
		switch {
		case err == nil:
			written = append(written, orders[i])
		case db.dialect.classify(err) == errDuplicate: // its row exists, for the same buyer
		case db.dialect.classify(err) == errData:
			if refused == nil {
				refused = make([]error, len(orders))
			}
			refused[i] = err
		default:
			return nil, err
		}
	}
	return refused, db.announce(ctx, t, written)
}

// orderParts cuts orders into what one statement takes.
func (db *DB) orderParts(orders []sale.Order) [][]sale.Order {
	var all [][]sale.Order
	start, size := 0, 0
	for i := range orders {
		bytes := rowOverheadBytes + len(orders[i].SKU) + len(orders[i].Buyer)
		if i-start == maxRows || (i > start && size+bytes > db.maxBytes) {
			all = append(all, orders[start:i])
			start, size = i, 0
		}
		size += bytes
	}
	return append(all, orders[start:])
}

func orderValues(o *sale.Order, now int64) []any {
	return []any{
		o.Buyer, o.ID[:], o.SKU, o.Quantity, orderCreated, millis(o.AcceptedAt), millis(o.ExpiresAt), now,
	}
}

// announce writes the notices of orders whose rows are written: the last thing before COMMIT.
func (db *DB) announce(ctx context.Context, t *txn, orders []sale.Order) error {
	if len(orders) == 0 {
		return nil
	}
	news := slices.Clone(orders)
	for i := range news {
		news[i].State, news[i].Reason = sale.OrderCreated, ""
	}
	if err := db.insertNotices(ctx, t, newNotices(sale.TopicCreated, news)); err != nil {
		return err
	}
	return db.faults.At(ctx, sale.OrdersWritten)
}
