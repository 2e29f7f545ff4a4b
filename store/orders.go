package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Order finds an order of a buyer by id: its order row, or else its outbox row, as QUEUED or CLOSED. Another buyer's
// order is sale.ErrNotFound.
func (db *DB) Order(ctx context.Context, buyer string, id sale.OrderID) (sale.Order, error) {
	// In this order: a row written in between is found in the outbox, as QUEUED.
	written, err := orderRows(ctx, db.read, db.sql.orderByID, buyer, id[:])
	if err != nil {
		return sale.Order{}, err
	}
	if len(written) > 0 {
		return written[0], nil
	}
	found, err := db.recordsByID(ctx, db.read, []sale.OrderID{id})
	if err != nil {
		return sale.Order{}, err
	}
	if r, ok := found[id]; ok && r.order.Buyer == buyer {
		return r.order, nil
	}
	return sale.Order{}, fmt.Errorf("order %s: %w", id, sale.ErrNotFound)
}

// OrdersOf lists at most limit of a buyer's written orders by id, after the given id; zero starts at the beginning.
func (db *DB) OrdersOf(ctx context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error) {
	return orderRows(ctx, db.read, db.sql.ordersOf, buyer, after[:], limit)
}
