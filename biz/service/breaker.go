package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// errUnfinished is what a breaker hears of a promise that did not come to its end.
var errUnfinished = errors.New("the promise did not end")

// alwaysClosed is the breaker of a writer that was given none.
type alwaysClosed struct{}

func (alwaysClosed) Allow() (func(error, time.Duration), error) {
	return func(error, time.Duration) {}, nil
}

func (alwaysClosed) Open() bool { return false }

// Shut tells whether a promise would be refused now: what is admitted would only have to be given back.
func (w *Writer) Shut() bool { return w.parts.Breaker.Open() }

// guarded makes a promise unless the breaker is open, and tells the breaker how that went, whatever happens. A refused one
// leaves every take as it was.
func (w *Writer) guarded(ctx context.Context, takes []sale.Take) []sale.Decision {
	done, err := w.parts.Breaker.Allow()
	if err != nil {
		refused := make([]sale.Decision, len(takes))
		for i := range refused {
			refused[i] = sale.Decision{Outcome: sale.NotTaken, Err: fmt.Errorf("%w: %w", sale.ErrNotSent, err)}
		}
		return refused
	}
	sick, began := errUnfinished, time.Now()
	waited := false // for a SKU's row: its time says nothing of the database
	defer func() {
		took := time.Since(began)
		if waited {
			sick, took = nil, 0
		}
		done(sick, took)
	}()
	decisions := w.parts.Promiser.Promise(ctx, takes)
	sick, waited = sickness(decisions), waitedForRows(decisions)
	return decisions
}

// waitedForRows tells that some takes of a group were not decided, and that rows of SKUs, which somebody sits on, were all
// that kept them from it.
func waitedForRows(decisions []sale.Decision) (waited bool) {
	for _, d := range decisions {
		if d.Outcome != sale.NotTaken && d.Outcome != sale.Undecided {
			continue
		}
		if !errors.Is(d.Err, sale.ErrRowLocked) {
			return false
		}
		waited = true
	}
	return waited
}

// sickness is what kept the database from deciding any take of a group; nil when it decided one.
func sickness(decisions []sale.Decision) (first error) {
	for _, d := range decisions {
		if d.Outcome != sale.NotTaken && d.Outcome != sale.Undecided {
			return nil
		}
		if first == nil {
			first = d.Err
		}
	}
	return first
}

// heldOff refuses a purchase before anything is taken for it: while too many accepted orders wait for the broker, and while
// nothing could be promised. A winner who asks again gets the order as long as MySQL is well.
func (s *Sales) heldOff(ctx context.Context, p *purchase) (r sale.Result, refused bool, err error) {
	if s.backlogged() {
		if p.keyed() {
			r, answered, err := s.lookUp(ctx, p)
			if err != nil || (answered && r.Code != sale.Busy) {
				return r, true, err
			}
			return busy(sale.ReasonBacklog, p.id, answered), true, nil
		}
		return busy(sale.ReasonBacklog, p.id, false), true, nil
	}
	if !p.acknowledge && s.writer.Shut() {
		return busy(sale.ReasonBreaker, p.id, false), true, nil
	}
	return sale.Result{}, false, nil
}

// reasonOf is the reason of BUSY for an error of a dependency.
func reasonOf(err error) sale.Reason {
	switch {
	case errors.Is(err, sale.ErrBreakerOpen):
		return sale.ReasonBreaker
	case errors.Is(err, sale.ErrQueueFull):
		return sale.ReasonQueueFull
	}
	return sale.ReasonDependency
}
