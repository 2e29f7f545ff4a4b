package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
// CLOSED, COMPENSATED, and the notice. Orders that have an outbox row are left alone, so it is safe to repeat.
//
// closed are the orders that are CLOSED now, by this call or before it; refused are those whose data the database will
// never take, with its reason. A take that is in neither has a row that is not closed, unless err says that the database
// did not do its part; err leaves closed and refused right.
func (db *DB) CloseUnpromised(ctx context.Context, takes []sale.Take) (
	closed []sale.OrderID, refused map[sale.OrderID]error, err error,
) {
	g := newGroup(takes)
	u := unpromised{refused: map[sale.OrderID]error{}}
	for i := range g.members {
		if m := &g.members[i]; m.decision.Outcome == sale.Rejected {
			u.refused[m.Order] = m.decision.Err
		}
	}
	for _, chunk := range chunks(g.first, db.maxBytes) {
		err = errors.Join(err, db.closeUnpromised(ctx, chunk, &u))
	}
	if err != nil {
		err = fmt.Errorf("close unpromised: %w", err)
	}
	return u.closed, u.refused, err
}

// unpromised is what became of takes that cannot be promised.
type unpromised struct {
	closed  []sale.OrderID
	refused map[sale.OrderID]error
}

// closeUnpromised writes a chunk, without the takes whose data the database refuses.
func (db *DB) closeUnpromised(ctx context.Context, chunk []*member, u *unpromised) error {
	var closed []sale.OrderID
	var err error
	for range maxWriteTries {
		err = db.writing(ctx, func(t *txn) (err error) {
			closed, err = db.writeUnpromised(ctx, t, chunk)
			return err
		})
		if db.dialect.classify(err) != errDuplicate { // a duplicate was written meanwhile: look again
			break
		}
	}
	if err == nil {
		u.closed = append(u.closed, closed...)
		return nil
	}
	if db.dialect.classify(err) != errData {
		return err
	}
	if len(chunk) == 1 {
		u.refused[chunk[0].Order] = err
		return nil
	}
	half := len(chunk) / 2
	return errors.Join(db.closeUnpromised(ctx, chunk[:half], u), db.closeUnpromised(ctx, chunk[half:], u))
}

// writeUnpromised lists the orders of the chunk that are closed once the transaction is committed.
func (db *DB) writeUnpromised(ctx context.Context, t *txn, chunk []*member) (closed []sale.OrderID, err error) {
	found, err := db.recordsByID(ctx, t, orderIDs(chunk))
	if err != nil {
		return nil, err
	}
	now := db.clock.now()
	var fresh []*member
	var orders []sale.Order
	for _, m := range chunk {
		r, known := found[m.Order]
		if !known || r.order.State == sale.OrderClosed {
			closed = append(closed, m.Order)
		}
		if known {
			continue
		}
		o := m.order(now)
		o.State, o.Reason = sale.OrderClosed, sale.ReasonCompensated
		fresh, orders = append(fresh, m), append(orders, o)
	}
	if len(fresh) == 0 {
		return closed, nil
	}
	return closed, db.insertUnpromised(ctx, t, fresh, orders, now)
}

// insertUnpromised writes CLOSED orders of takes that have no row, and the notice.
func (db *DB) insertUnpromised(ctx context.Context, t *txn, fresh []*member, orders []sale.Order, now time.Time) error {
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
