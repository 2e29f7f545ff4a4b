package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"stockade/biz/sale"
)

// maxStuck bounds the orders that one round of the expiry sweeper steps over because they would not close.
const maxStuck = 10_000

// Expirer closes orders whose payment window has ended: those that a timeout message names, and, independently, those
// that a sweep finds.
type Expirer struct {
	cfg     Config
	store   Settlements
	settler *Settler
	paused  func() bool
	log     *slog.Logger
	pace    pace
}

// NewExpirer returns an expirer; Run does the sweeping. While paused says so nothing is closed.
func NewExpirer(cfg Config, store Settlements, settler *Settler, paused func() bool, log *slog.Logger) *Expirer {
	return &Expirer{
		cfg: cfg, store: store, settler: settler, paused: paused, log: log,
		pace: pace{each: time.Second / time.Duration(cfg.ExpiryPerSecond)},
	}
}

// Run sweeps until ctx ends.
func (e *Expirer) Run(ctx context.Context) {
	every(ctx, ms(e.cfg.ExpiryEveryMs), func() {
		if err := e.Round(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "due orders not closed, trying again", "error", err)
		}
	})
}

// Expire closes the orders that a timeout message names, at the bounded rate. What it cannot close, or may not while
// expiry is paused, is left to the sweeper: the only error is that of an ended ctx.
func (e *Expirer) Expire(ctx context.Context, ids []sale.OrderID) error {
	if e.paused() {
		return nil
	}
	if _, err := e.close(ctx, ids); err != nil {
		e.log.WarnContext(ctx, "orders not closed, left to the sweeper", "error", err)
	}
	return ctx.Err()
}

// Round closes what is due, page by page, until nothing is. Orders that would not close are stepped over, so that they
// do not stand in the way of the others; the first of their errors is returned.
func (e *Expirer) Round(ctx context.Context) (trouble error) {
	stuck := map[sale.OrderID]bool{}
	for !e.paused() && len(stuck) < maxStuck {
		due, err := e.due(ctx, e.cfg.SettleGroup+len(stuck))
		if err != nil {
			return err
		}
		var fresh []sale.OrderID
		for _, id := range due {
			if !stuck[id] {
				fresh = append(fresh, id)
			}
		}
		if len(fresh) == 0 {
			return trouble
		}
		left, err := e.close(ctx, fresh)
		for _, id := range left {
			stuck[id] = true
		}
		if trouble == nil {
			trouble = err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return trouble
}

func (e *Expirer) due(ctx context.Context, limit int) ([]sale.OrderID, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(e.cfg.SettleTimeoutMs))
	defer cancel()
	return e.store.Due(ctx, limit)
}

// close expires orders in groups and returns those that may still be open although they are due.
func (e *Expirer) close(ctx context.Context, ids []sale.OrderID) (open []sale.OrderID, trouble error) {
	for len(ids) > 0 {
		n := min(len(ids), e.cfg.SettleGroup)
		if err := e.pace.wait(ctx, n); err != nil {
			return append(open, ids...), err
		}
		for i, done := range e.settler.Expire(ctx, ids[:n]) {
			switch done.Outcome {
			case sale.NotChanged, sale.ChangeUnknown:
				open = append(open, ids[i])
				trouble = firstOf(trouble, because(sale.ErrUnavailable, done.Err))
			case sale.StillQueued, sale.NoOrder: // Due lists written orders only: these rows do not agree
				open = append(open, ids[i])
				trouble = firstOf(trouble, fmt.Errorf("order %s: %w", ids[i], errNotClosable))
			case sale.NotDue: // by the clock of the database; the sweeper will find it
				open = append(open, ids[i])
			}
		}
		ids = ids[n:]
	}
	return open, trouble
}

var errNotClosable = errors.New("it is due, but it has no order row or no outbox row")

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// pace keeps the orders that one node closes below a rate. All callers share it.
type pace struct {
	each time.Duration // one order's share of time

	mu   sync.Mutex
	next time.Time
}

// wait returns when n orders may be closed.
func (p *pace) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(time.Duration(n) * p.each)
	p.mu.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		p.mu.Lock()
		p.next = p.next.Add(-time.Duration(n) * p.each) // nothing was closed in this time: others may have it
		p.mu.Unlock()
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
