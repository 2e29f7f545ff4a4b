package store

import (
	"context"
	"errors"
	"fmt"

	"stockade/biz/sale"
)

// correcting names the restock rows of corrections.
const correcting = "reconcile"

// CorrectOrder makes the one correction that a discrepancy names, if the rows, now locked, still disagree in that way;
// else it changes nothing and returns false. sale.ErrNotFound for an unknown SKU.
func (db *DB) CorrectOrder(ctx context.Context, sku string, d sale.Discrepancy) (corrected bool, err error) {
	if d.Correction == "" {
		return false, nil
	}
	err = db.writing(ctx, func(t *txn) error {
		corrected = false
		both, err := db.lockBoth(ctx, t, sku, d)
		if err != nil {
			return err
		}
		kind, fix := both.judge()
		if kind != d.Kind || fix.String() != d.Correction {
			return nil
		}
		corrected, err = db.repair(ctx, t, both, fix)
		return err
	})
	switch {
	case db.dialect.classify(err) == errDuplicate: // somebody wrote the missing row meanwhile
		return false, nil
	case err != nil:
		return false, fmt.Errorf("correct order %s: %w", d.Order, err)
	}
	return corrected, nil
}

// locked is both rows of an order with all that a correction needs of them, held until the transaction ends.
type locked struct {
	pair
	record   record
	written  sale.Order
	epoch    int64 // of the ledger
	restored bool  // the order has a restock row
}

// lockBoth holds the order row, the ledger and the outbox row, in this order.
func (db *DB) lockBoth(ctx context.Context, t *txn, sku string, d sale.Discrepancy) (both locked, err error) {
	both.id, both.buyer = d.Order, d.Buyer
	written, err := orderRows(ctx, t, db.sql.ordersLock, d.Buyer, d.Order[:])
	if err != nil {
		return both, err
	}
	if len(written) > 0 {
		both.written, both.row = written[0], written[0].State
	}
	l, err := db.lockLedger(ctx, t, sku)
	if err != nil {
		return both, err
	}
	both.epoch = l.Epoch
	var state int
	err = scanOne(ctx, t, []any{&state}, db.sql.reconcileLock, d.Order[:])
	if errors.Is(err, sale.ErrNotFound) {
		return both, nil
	}
	if err != nil {
		return both, err
	}
	found, err := db.recordsByID(ctx, t, []sale.OrderID{d.Order})
	if err != nil {
		return both, err
	}
	r, ok := found[d.Order]
	if !ok || r.order.SKU != sku || r.order.Buyer != d.Buyer {
		return both, nil
	}
	both.record, both.quantity = r, r.order.Quantity
	both.closed = r.order.State == sale.OrderClosed
	both.outbox = outboxText(state, both.closed)
	both.same = both.written.SKU == sku && both.written.Quantity == r.order.Quantity
	return both, scanOne(ctx, t, []any{&both.dead, &both.restored}, db.sql.reconcileSettled, d.Order[:], sale.DeadOpen,
		d.Order[:])
}

func (db *DB) repair(ctx context.Context, t *txn, both locked, fix repair) (bool, error) {
	switch fix {
	case sendAgain:
		_, err := t.exec(ctx, inList(db.sql.outboxRenew, 1), both.record.seq)
		return err == nil, err
	case writeClosed:
		o := both.record.order
		_, err := t.exec(ctx, db.sql.orderInsertClosed, o.Buyer, o.ID[:], o.SKU, o.Quantity, orderClosed, o.Reason,
			millis(o.AcceptedAt), millis(o.ExpiresAt), millis(db.clock.now()))
		if err != nil {
			return false, err
		}
		return true, db.insertNotices(ctx, t, newNotices(sale.TopicClosed, []sale.Order{o}))
	case closeOrder:
		o := both.record.order
		if _, err := t.exec(ctx, db.sql.ordersSettle, orderClosed, o.Reason, o.Buyer, o.ID[:]); err != nil {
			return false, err
		}
		return true, db.insertNotices(ctx, t, newNotices(sale.TopicClosed, []sale.Order{o}))
	case closeOutbox:
		return db.closeLikeItsOrder(ctx, t, both)
	}
	return false, nil
}

// closeLikeItsOrder does to the ledger and the outbox what the settlement that closed the order row left out. Where the
// units went back already, only a person can tell what happened.
func (db *DB) closeLikeItsOrder(ctx context.Context, t *txn, both locked) (bool, error) {
	if both.restored {
		return false, nil
	}
	r, o := both.record, both.written
	now := millis(db.clock.now())
	_, err := t.exec(ctx, db.sql.ledgerSettle, o.Quantity, o.Quantity, 0, o.SKU)
	if err != nil {
		return false, err
	}
	_, err = t.exec(ctx, inList(db.sql.outboxCloseDone, 1), now, o.Reason, o.ID[:])
	if err != nil {
		return false, err
	}
	_, err = t.exec(ctx, db.sql.restockInsert, o.ID[:], o.SKU, o.Buyer, o.Quantity, int64(r.share), r.token.Epoch,
		both.epoch, o.Reason, correcting, now)
	return err == nil, err
}
