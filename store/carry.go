package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stockade/biz/sale"
)

// Carry promises acknowledged takes of older epochs for the reshare that has this epoch, while nobody else can promise:
// those that fit are Promised (or Found, or FoundElse), the others Short or OverLimit, or Rejected when the database
// refuses their data. The takes' own epoch and mode do not matter. sale.ErrConflict when another reshare began, or this
// one has finished. After any error some takes may be promised: repeating finds them.
func (db *DB) Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error) {
	for _, take := range takes {
		if take.SKU != sku {
			return nil, fmt.Errorf("carry: order %s is of %s, not of %s", take.Order, take.SKU, sku)
		}
	}
	g := newGroup(takes)
	for _, chunk := range chunks(g.first, db.maxBytes) {
		db.decide(ctx, terms{carries: epoch}, chunk)
	}
	decisions := g.decisions()
	for _, d := range decisions {
		switch d.Outcome {
		case sale.Fenced:
			return nil, fmt.Errorf("carry: sku %s: reshare %d is not under way: %w", sku, epoch, sale.ErrConflict)
		case sale.NotTaken, sale.Undecided:
			return nil, fmt.Errorf("carry: %w", d.Err)
		}
	}
	return decisions, nil
}

// terms are what a group of takes is promised under: the live epoch and mode that each take names, or, for a reshare
// that carries takes over, its own epoch.
type terms struct{ carries int64 }

// fenced tells whether the ledger has moved on from what a take was admitted under.
func (k terms) fenced(l sale.Ledger, m *member) bool {
	if k.carries > 0 {
		return l.Epoch != k.carries || l.LiveEpoch >= l.Epoch
	}
	return !l.Live() || m.Epoch != l.LiveEpoch || m.Mode != l.Mode
}

// raisePromised raises the ledger's promised for a portion; false when its terms or its units do not allow it.
func (db *DB) raisePromised(ctx context.Context, t *txn, k terms, p portion) (bool, error) {
	lead := p.members[0]
	query, args := db.sql.ledgerPromise, []any{p.units, p.units, p.sku, lead.Epoch, lead.Mode, p.units}
	if k.carries > 0 {
		query, args = db.sql.ledgerCarry, []any{p.units, p.units, p.sku, k.carries, p.units}
	}
	n, err := t.exec(ctx, query, args...)
	return n > 0, err
}

// CloseUnpromised writes takes that were answered ACCEPTED and cannot be promised: an outbox row and an order row, both
// CLOSED, COMPENSATED, and the notice. Orders that have an outbox row are left alone, so it is safe to repeat. After an
// error some takes may be written; those whose data the database refuses never are, and do not keep the others out.
func (db *DB) CloseUnpromised(ctx context.Context, takes []sale.Take) error {
	g := newGroup(takes)
	var errs []error
	for i := range g.members {
		if m := &g.members[i]; m.decision.Outcome == sale.Rejected {
			errs = append(errs, fmt.Errorf("order %s: %w", m.Order, m.decision.Err))
		}
	}
	for _, chunk := range chunks(g.first, db.maxBytes) {
		errs = append(errs, db.closeUnpromised(ctx, chunk))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close unpromised: %w", err)
	}
	return nil
}

func (db *DB) closeUnpromised(ctx context.Context, chunk []*member) error {
	var err error
	for range maxWriteTries {
		err = db.writing(ctx, func(t *txn) error { return db.writeUnpromised(ctx, t, chunk) })
		if db.dialect.classify(err) != errDuplicate { // a duplicate was written meanwhile: look again
			break
		}
	}
	if db.dialect.classify(err) != errData {
		return err
	}
	if len(chunk) == 1 {
		return fmt.Errorf("order %s: %w", chunk[0].Order, err)
	}
	half := len(chunk) / 2
	return errors.Join(db.closeUnpromised(ctx, chunk[:half]), db.closeUnpromised(ctx, chunk[half:]))
}

func (db *DB) writeUnpromised(ctx context.Context, t *txn, chunk []*member) error {
	found, err := db.recordsByID(ctx, t, orderIDs(chunk))
	if err != nil {
		return err
	}
	now := db.clock.now()
	var fresh []*member
	var orders []sale.Order
	for _, m := range chunk {
		if _, known := found[m.Order]; known {
			continue
		}
		o := m.order(now)
		o.State, o.Reason = sale.OrderClosed, sale.ReasonCompensated
		fresh, orders = append(fresh, m), append(orders, o)
	}
	if len(fresh) == 0 {
		return nil
	}
	byKey := slices.Clone(orders)
	slices.SortFunc(byKey, compareKeys)
	if err := db.insertClosedOrders(ctx, t, byKey); err != nil {
		return err
	}
	values := make([]any, 0, 15*len(fresh))
	for i, m := range fresh {
		values = append(values, m.Order[:], m.SKU, m.Buyer, m.Quantity, int64(m.Share), m.Token.Epoch, m.Token.Change,
			outboxDone, 0, db.node, millis(now), millis(now), millis(orders[i].ExpiresAt),
			millis(now), string(sale.ReasonCompensated))
	}
	if _, err := t.exec(ctx, bulk(db.sql.outboxInsertClosed, len(fresh)), values...); err != nil {
		return err
	}
	return db.insertNotices(ctx, t, newNotices(sale.TopicClosed, orders))
}
