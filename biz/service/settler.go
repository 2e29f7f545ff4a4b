package service

import (
	"context"
	"errors"
	"fmt"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

// ErrOutcomeUnknown says that a change of an order may have been made or not: asking again is safe, and tells.
var ErrOutcomeUnknown = errors.New("the outcome is unknown")

// ValidPayment reports whether id can be a payment's: 1 to sale.MaxPaymentID bytes of printable UTF-8.
func ValidPayment(id string) bool { return len(id) <= sale.MaxPaymentID && ValidBuyer(id) }

// Settler changes orders after they were accepted. Single changes gather into groups, as purchases do, so that a hot
// ledger row is written once a commit; what the closed ones give back goes to the creditor.
type Settler struct {
	cfg      Config
	store    Settlements
	lookup   OrderLookup
	creditor *Creditor
	faults   sale.Faults
	journal  func() bool
	batcher  *batch.Batcher[sale.Change, sale.Settled]
}

// NewSettler starts a settler; Close ends it. journal tells whether orders may have been acknowledged that the store does
// not have yet; nil: never.
func NewSettler(
	cfg Config, store Settlements, lookup OrderLookup, creditor *Creditor, faults sale.Faults, journal func() bool,
) *Settler {
	if journal == nil {
		journal = func() bool { return false }
	}
	s := &Settler{cfg: cfg, store: store, lookup: lookup, creditor: creditor, faults: faults, journal: journal}
	s.batcher = batch.New(batch.Config{Queue: cfg.SettleQueue, MaxGroup: cfg.SettleGroup, Workers: cfg.Settlers}, s.serve)
	return s
}

// Close settles what waits, then stops.
func (s *Settler) Close() { s.batcher.Close() }

// Pay makes an order PAID by this payment. What it says no to is in the outcome.
//
// Errors of Pay, Cancel and Compensate: sale.ErrQueueFull, sale.ErrShuttingDown and sale.ErrUnavailable mean that
// nothing was changed; ErrOutcomeUnknown.
func (s *Settler) Pay(ctx context.Context, id sale.OrderID, payment string) (sale.Settled, error) {
	return s.change(ctx, sale.Change{Kind: sale.Pay, Order: id, Payment: payment, Actor: "payment"})
}

// Cancel closes an order that is not paid: of this buyer, or, with an empty buyer, of whoever it is.
func (s *Settler) Cancel(ctx context.Context, id sale.OrderID, buyer, actor string) (sale.Settled, error) {
	return s.change(ctx, sale.Change{Kind: sale.Cancel, Order: id, Buyer: buyer, Actor: actor})
}

// Compensate closes an accepted order that can never be written. One that is written stays as it is.
func (s *Settler) Compensate(ctx context.Context, id sale.OrderID, actor string) (sale.Settled, error) {
	return s.change(ctx, sale.Change{Kind: sale.Compensate, Order: id, Actor: actor})
}

// AnyOrder finds an order for an operator; sale.ErrNotFound, sale.ErrUnavailable.
func (s *Settler) AnyOrder(ctx context.Context, id sale.OrderID) (sale.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	order, err := s.lookup.AnyOrder(ctx, id)
	return order, unavailable(err)
}

// Expire closes those of the orders whose payment window has ended by the clock of the database, one group after the
// other, in front of nobody's queue. Outcomes come in the order of ids; behind the end of ctx they are NotChanged.
func (s *Settler) Expire(ctx context.Context, ids []sale.OrderID) []sale.Settled {
	all := make([]sale.Settled, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), s.cfg.SettleGroup)
		changes := make([]sale.Change, n)
		for i, id := range ids[:n] {
			changes[i] = sale.Change{Kind: sale.Expire, Order: id, Actor: "expiry"}
		}
		if err := ctx.Err(); err != nil {
			for range changes {
				all = append(all, sale.Settled{Outcome: sale.NotChanged, Err: err})
			}
		} else {
			all = append(all, s.settle(ctx, changes)...)
		}
		ids = ids[n:]
	}
	return all
}

func (s *Settler) change(ctx context.Context, c sale.Change) (sale.Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ChangeTimeoutMs))
	defer cancel()
	done, err := s.batcher.Do(ctx, c)
	switch {
	case errors.Is(err, sale.ErrQueueFull), errors.Is(err, sale.ErrShuttingDown):
		return done, err
	case errors.Is(err, sale.ErrNotSent):
		return done, fmt.Errorf("%w: %w", sale.ErrUnavailable, err)
	case err != nil:
		return done, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	switch done.Outcome {
	case sale.NotChanged:
		return done, because(sale.ErrUnavailable, done.Err)
	case sale.ChangeUnknown:
		return done, because(ErrOutcomeUnknown, done.Err)
	case sale.NoOrder:
		if s.journal() { // it may be on its way: who hears "no such order" about a payment would not ask again
			done.Outcome = sale.StillQueued
		}
	}
	return done, nil
}

// because says what an error means, with its cause where there is one.
func because(means, cause error) error {
	if cause == nil {
		return means
	}
	return fmt.Errorf("%w: %w", means, cause)
}

func (s *Settler) serve(group []*batch.Call[sale.Change, sale.Settled]) {
	changes := make([]sale.Change, len(group))
	for i, call := range group {
		changes[i] = call.Query
	}
	for i, done := range s.settle(context.Background(), changes) {
		group[i].Answer(done, nil)
	}
}

// settle decides a group of changes and hands over what they gave back. A restock that the creditor never hears of is
// found by its sweeper.
func (s *Settler) settle(ctx context.Context, changes []sale.Change) []sale.Settled {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.SettleTimeoutMs))
	defer cancel()
	all := s.store.Settle(ctx, changes)
	var restocks []sale.Restock
	changed := false
	for _, done := range all {
		changed = changed || done.Outcome == sale.Changed
		if done.Restock != nil {
			restocks = append(restocks, *done.Restock)
		}
	}
	if changed && s.faults.At(ctx, sale.SettlementCommitted) == nil {
		s.creditor.Offer(restocks)
	}
	return all
}
