package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stockade/biz/sale"
)

// Bounds of a reconciliation.
const (
	comparePage = 5000                   // rows compared in one step
	maxListed   = 1000                   // disagreeing orders that a report names; all are counted
	driftLooks  = 3                      // measurements before drift is believed
	driftPause  = 200 * time.Millisecond // between them
)

// Reconciliation is what the rows of a SKU say, beside its ledger and its gate.
type Reconciliation struct {
	SKU    string           `json:"sku"`
	State  sale.SKUState    `json:"state"`
	Total  int64            `json:"total"`
	Ledger sale.LedgerCheck `json:"ledger"`         // as it was found
	Gate   *GateCheck       `json:"gate,omitempty"` // missing when the gate holds no shares of the SKU, or does not count
	// Differ counts the orders whose rows do not agree, Kinds by kind; Orders names the first of them.
	Differ int64                          `json:"differ"`
	Kinds  map[sale.DiscrepancyKind]int64 `json:"kinds"`
	Orders []sale.Discrepancy             `json:"orders"`
	// What a fix did. Ledger, Differ and Gate still say what was found.
	Fix       bool             `json:"fix"`
	Corrected int64            `json:"corrected"` // orders
	After     sale.LedgerCheck `json:"after"`     // the ledger at the end
	Reshared  bool             `json:"reshared"`
	// Agrees tells whether nothing is wrong, or left to be mended, at the end.
	Agrees bool `json:"agrees"`
}

// GateCheck are the terms of the conservation equation.
type GateCheck struct {
	Terms
	Drift  int64 `json:"drift"`  // total − promised − left − pending
	Excess int64 `json:"excess"` // what of the drift nothing on its way explains
}

// Reconcile compares every row of a SKU with every other one that should agree. Without fix it changes nothing. With fix
// it corrects the orders that can be corrected, then the ledger, then the gate with a full reshare. It holds a page of
// rows at a time.
func (s *SKUs) Reconcile(ctx context.Context, sku string, fix bool) (Reconciliation, error) {
	l, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return Reconciliation{}, unavailable(err)
	}
	r := Reconciliation{
		SKU: sku, State: l.State, Total: l.Ledger.Total, Fix: fix,
		Kinds: map[sale.DiscrepancyKind]int64{}, Orders: []sale.Discrepancy{},
	}
	if r.Ledger, err = s.books.CheckLedger(ctx, sku); err != nil {
		return r, unavailable(err)
	}
	r.After = r.Ledger
	if l.State != sale.ClosedOut { // its outbox rows are archived
		if err := s.compare(ctx, &r); err != nil {
			return r, unavailable(err)
		}
	}
	if fix && (!r.Ledger.Agrees() || r.Corrected > 0) {
		if r.After, err = s.books.CorrectLedger(ctx, sku); err != nil {
			return r, unavailable(err)
		}
	}
	if r.Gate, err = s.gateCheck(ctx, sku); err != nil {
		return r, unavailable(err)
	}
	whole := r.Gate == nil || r.Gate.Excess == 0
	if fix && !whole {
		if err := s.resharer.Run(ctx, sku, ReshareOrder{Reason: "reconcile", Full: true}); err != nil {
			return r, unavailable(err)
		}
		r.Reshared, whole = true, true
	}
	if fix && (r.Reshared || r.Corrected > 0 || !r.Ledger.Agrees()) {
		if _, err := s.changed(ctx, sku); err != nil {
			return r, err
		}
	}
	r.Agrees = whole && r.After.Agrees() && r.Differ == r.Corrected
	return r, nil
}

// compare goes through the outbox rows of the SKU, then through all order rows, for those that no outbox row knows.
func (s *SKUs) compare(ctx context.Context, r *Reconciliation) error {
	for after := int64(0); ; {
		found, next, err := s.books.CompareOutbox(ctx, r.SKU, after, comparePage)
		if err == nil {
			err = s.differ(ctx, r, found)
		}
		if err != nil {
			return err
		}
		if next == 0 {
			break
		}
		after = next
	}
	for after := (sale.OrderCursor{}); ; {
		found, next, more, err := s.books.CompareOrders(ctx, r.SKU, after, comparePage)
		if err == nil {
			err = s.differ(ctx, r, found)
		}
		if err != nil || !more {
			return err
		}
		after = next
	}
}

// differ notes orders that do not agree and, in a fix, corrects those that can be.
func (s *SKUs) differ(ctx context.Context, r *Reconciliation, found []sale.Discrepancy) error {
	for _, d := range found {
		r.Differ++
		r.Kinds[d.Kind]++
		if len(r.Orders) < maxListed {
			r.Orders = append(r.Orders, d)
		}
		if !r.Fix || d.Correction == "" {
			continue
		}
		corrected, err := s.books.CorrectOrder(ctx, r.SKU, d)
		if err != nil {
			return fmt.Errorf("order %s: %w", d.Order, err)
		}
		if corrected {
			r.Corrected++
		}
	}
	return nil
}

// gateCheck measures the gate, a few times if it drifts: what is on its way can look like drift once. It is nil when the
// gate holds no shares that count.
func (s *SKUs) gateCheck(ctx context.Context, sku string) (*GateCheck, error) {
	var check *GateCheck
	for range driftLooks {
		terms, l, figures, err := s.conserve.Terms(ctx, sku)
		switch {
		case l.ID != "" && !keepsShares(l): // also when the gate is why it does not count
			return nil, nil
		case err == nil && !l.Ledger.Live():
			return nil, nil
		case err != nil && !errors.Is(err, errMoved):
			return nil, err
		case err == nil:
			check = &GateCheck{Terms: terms, Drift: terms.Drift(), Excess: terms.Excess()}
			gone := slices.ContainsFunc(figures, func(f sale.Figures) bool { return f.Gone || f.Sealed })
			if check.Excess == 0 && !gone {
				return check, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(driftPause):
		}
	}
	return check, nil
}
