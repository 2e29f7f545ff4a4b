package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// AnyOrder finds an order by id, whoever it belongs to; sale.ErrNotFound. Its outbox row knows its buyer, also in the
// archive behind a close-out.
func (db *DB) AnyOrder(ctx context.Context, id sale.OrderID) (sale.Order, error) {
	// In this order: a row that is archived in between is found in the archive.
	for _, query := range []string{db.sql.outboxByIDs, db.sql.archiveByIDs} {
		found, err := db.recordsFrom(ctx, db.read, query, []sale.OrderID{id})
		if err != nil {
			return sale.Order{}, err
		}
		if r, ok := found[id]; ok {
			return db.Order(ctx, r.order.Buyer, id)
		}
	}
	return sale.Order{}, fmt.Errorf("order %s: %w", id, sale.ErrNotFound)
}
