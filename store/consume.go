package store

import (
	"cmp"
	"context"
	"database/sql"
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

// insertEach leaves out what is written already, which is everything when an envelope comes again, and finds what cannot
// be written by halves. A statement for each row would take so long, with the rows before it locked, that consumers of the
// same orders give up waiting for each other.
func (db *DB) insertEach(ctx context.Context, t *txn, orders []sale.Order) (refused []error, err error) {
	var fresh []sale.Order
	var from []int // their positions in orders
	at := 0
	for _, part := range db.orderParts(orders) {
		there, err := db.writtenOrders(ctx, t, part)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if !there[keyOf(&part[i])] {
				fresh, from = append(fresh, part[i]), append(from, at+i)
			}
		}
		at += len(part)
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	h := halving{db: db, t: t, now: millis(db.clock.now())}
	for _, part := range db.orderParts(fresh) {
		if err := h.insert(ctx, part, from); err != nil {
			return nil, err
		}
		from = from[len(part):]
	}
	if h.refused != nil {
		refused = make([]error, len(orders))
		for i, why := range h.refused {
			refused[i] = why
		}
	}
	return refused, db.announce(ctx, t, h.written)
}

// halving writes orders and remembers which of them.
type halving struct {
	db      *DB
	t       *txn
	now     int64
	written []sale.Order
	refused map[int]error // by position
}

// insert writes orders with one statement, or, when something is wrong with one of them, with one for each half. A
// statement that fails for its data undoes itself only; the transaction goes on. from has the orders' positions.
func (h *halving) insert(ctx context.Context, orders []sale.Order, from []int) error {
	values := make([]any, 0, 8*len(orders))
	for i := range orders {
		values = append(values, orderValues(&orders[i], h.now)...)
	}
	_, err := h.t.exec(ctx, bulk(h.db.sql.orderInsert, len(orders)), values...)
	kind := h.db.dialect.classify(err)
	switch {
	case err == nil:
		h.written = append(h.written, orders...)
		return nil
	case kind != errDuplicate && kind != errData:
		return err
	case len(orders) > 1:
		half := len(orders) / 2
		if err := h.insert(ctx, orders[:half], from); err != nil {
			return err
		}
		return h.insert(ctx, orders[half:], from[half:])
	case kind == errData:
		if h.refused == nil {
			h.refused = map[int]error{}
		}
		h.refused[from[0]] = err
	} // else its row exists, for the same buyer
	return nil
}

// orderKey is the primary key of an order row.
type orderKey struct {
	buyer string
	id    sale.OrderID
}

func keyOf(o *sale.Order) orderKey { return orderKey{o.Buyer, o.ID} }

// writtenOrders finds those that have a row.
func (db *DB) writtenOrders(ctx context.Context, t *txn, orders []sale.Order) (map[orderKey]bool, error) {
	args := make([]any, 0, 2*len(orders))
	for i := range orders {
		args = append(args, orders[i].Buyer, orders[i].ID[:])
	}
	keys, err := collect(ctx, t, func(rows *sql.Rows) (k orderKey, err error) {
		var id []byte
		if err := rows.Scan(&k.buyer, &id); err != nil {
			return k, err
		}
		k.id, err = orderID(id)
		return k, err
	}, pairList(db.sql.ordersWritten, len(orders)), args...)
	there := make(map[orderKey]bool, len(keys))
	for _, k := range keys {
		there[k] = true
	}
	return there, err
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
