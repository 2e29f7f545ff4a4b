package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// AnyOrder finds an order by id, whoever it belongs to; sale.ErrNotFound. The outbox knows its buyer, until close-out
// archives it.
func (db *DB) AnyOrder(ctx context.Context, id sale.OrderID) (sale.Order, error) {
	found, err := db.recordsByID(ctx, db.read, []sale.OrderID{id})
	if err != nil {
		return sale.Order{}, err
	}
	r, ok := found[id]
	if !ok {
		return sale.Order{}, fmt.Errorf("order %s: %w", id, sale.ErrNotFound)
	}
	return db.Order(ctx, r.order.Buyer, id)
}
