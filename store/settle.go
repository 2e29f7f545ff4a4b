package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"stockade/biz/sale"
)

// settle looks at a chunk that did not fit while holding its ledger rows: it answers the takes that cannot be promised
// and returns the rest, for a new transaction. It writes nothing.
func (db *DB) settle(ctx context.Context, under terms, chunk []*member) (rest []*member, err error) {
	t, err := db.begin(ctx)
	if err != nil {
		return chunk, err
	}
	defer t.close()
	all := portions(chunk)
	ledgers := make(map[string]sale.Ledger, len(all))
	for _, p := range all {
		l, err := db.lockLedger(ctx, t, p.sku)
		if errors.Is(err, sale.ErrNotFound) {
			continue
		}
		if err != nil {
			return chunk, &skuError{p.sku, err}
		}
		ledgers[p.sku] = l
	}
	found, err := db.recordsByID(ctx, t, orderIDs(chunk))
	if err != nil {
		return chunk, err
	}
	// Answers are given at the end, when nothing can fail any more.
	answers := make(map[*member]func(), len(chunk))
	for _, p := range all {
		var fresh []*member
		for _, m := range p.members {
			if r, ok := found[m.Order]; ok {
				answers[m] = func() { m.found(r.order, r.share, r.token) }
			} else {
				fresh = append(fresh, m)
			}
		}
		l, exists := ledgers[p.sku]
		if !exists {
			for _, m := range fresh {
				answers[m] = func() {
					m.refuse(sale.Rejected, fmt.Errorf("sku %s: %w", m.SKU, sale.ErrNotFound))
				}
			}
			continue
		}
		if err := db.weigh(ctx, t, under, l, fresh, answers); err != nil {
			return chunk, err
		}
	}
	for _, m := range chunk {
		if answer := answers[m]; answer != nil {
			answer()
		} else {
			rest = append(rest, m)
		}
	}
	return rest, nil
}

// weigh takes out, among takes of one SKU that have no row yet, those of another epoch, those that the ledger has too
// few units for, and those over their buyer's limit. It goes by order id, which is the order of arrival for ids made
// by time: later takes leave first, and one that leaves takes no units from the next.
func (db *DB) weigh(
	ctx context.Context, t *txn, under terms, l sale.Ledger, of []*member, answers map[*member]func(),
) error {
	var current []*member
	for _, m := range of {
		if under.fenced(l, m) {
			answers[m] = func() { m.refuse(sale.Fenced, nil) }
			continue
		}
		current = append(current, m)
	}
	if len(current) == 0 {
		return nil
	}
	names, limits := buyers(current)
	live, err := db.liveUnits(ctx, t, current[0].SKU, names)
	if err != nil {
		return err
	}
	available := l.Available()
	for _, m := range current {
		switch units := live[m.Buyer]; {
		case m.Quantity > available:
			d := sale.Decision{Outcome: sale.Short, Available: available}
			answers[m] = func() { m.decision = d }
		case units+m.Quantity > limits[m.Buyer]:
			d := sale.Decision{Outcome: sale.OverLimit, Live: units}
			answers[m] = func() { m.decision = d }
		default:
			available -= m.Quantity
			live[m.Buyer] += m.Quantity
		}
	}
	return nil
}

// lockLedger holds a SKU's ledger row until the transaction ends, and reads what decisions need; sale.ErrNotFound.
func (db *DB) lockLedger(ctx context.Context, t *txn, sku string) (l sale.Ledger, err error) {
	err = t.QueryRowContext(ctx, db.sql.ledgerLock, sku).
		Scan(&l.Epoch, &l.LiveEpoch, &l.Mode, &l.State, &l.Total, &l.Promised)
	if errors.Is(err, sql.ErrNoRows) {
		err = sale.ErrNotFound
	}
	return l, err
}
