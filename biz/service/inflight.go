package service

import (
	"context"
	"sync"
	"time"

	"stockade/biz/sale"
)

// inflight joins requests of the same order id that run on this node at the same time: one of them goes to the gate,
// the others get its answer. The shared work goes on as long as somebody waits for it, whoever began it. It holds one
// entry for each keyed request that is running.
type inflight struct {
	mu      sync.Mutex
	running map[sale.OrderID]*flight
}

// inflightParts is how many locks the running requests of a node share: every keyed purchase looks at one of them first.
const inflightParts = 64

// inflights are the running requests by a part of their order ids, whose last byte is random or a hash.
type inflights [inflightParts]*inflight

func newInflights() *inflights {
	all := &inflights{}
	for i := range all {
		all[i] = newInflight()
	}
	return all
}

func (all *inflights) of(id sale.OrderID) *inflight { return all[id[len(id)-1]%inflightParts] }

type flight struct {
	quantity int64
	waiting  int // requests that want the answer; guarded by inflight.mu
	cancel   context.CancelFunc
	done     chan struct{}
	result   sale.Result
	err      error
}

func newInflight() *inflight { return &inflight{running: map[sale.OrderID]*flight{}} }

// do runs fn, or waits for the one that runs already. fn's context ends at the deadline of whoever began it, or when
// nobody waits any more. The same id with another quantity is sale.ErrKeyReused.
func (f *inflight) do(
	ctx context.Context, deadline time.Time, id sale.OrderID, quantity int64, fn func(context.Context) (sale.Result, error),
) (sale.Result, error) {
	for {
		shared, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		fl, first, abandoned := f.enter(id, quantity, cancel)
		if first {
			return f.lead(ctx, shared, id, fl, fn)
		}
		cancel()
		if fl.quantity != quantity {
			return sale.Result{}, sale.ErrKeyReused
		}
		select {
		case <-fl.done:
			if !abandoned {
				joined := fl.result
				joined.Replayed = joined.Code == sale.Accepted
				return joined, fl.err
			} // it ended because nobody wanted it: begin anew
		case <-ctx.Done():
			if !abandoned {
				f.leave(fl)
			}
			return busy(sale.ReasonDependency, id, true), nil
		}
	}
}

// has tells whether a request with this id is running.
func (f *inflight) has(id sale.OrderID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, running := f.running[id]
	return running
}

// enter returns the flight of this id, a new one when none is running. abandoned tells that everybody who wanted its
// answer has left: it must be awaited, and its answer is worth nothing.
func (f *inflight) enter(id sale.OrderID, quantity int64, cancel context.CancelFunc) (fl *flight, first, abandoned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if running, ok := f.running[id]; ok {
		if running.waiting == 0 {
			return running, false, true
		}
		if running.quantity == quantity {
			running.waiting++
		}
		return running, false, false
	}
	fl = &flight{quantity: quantity, waiting: 1, cancel: cancel, done: make(chan struct{})}
	f.running[id] = fl
	return fl, true, false
}

// lead does the shared work in the first request's goroutine, also when its own client has left and others wait.
func (f *inflight) lead(
	ctx, shared context.Context, id sale.OrderID, mine *flight, fn func(context.Context) (sale.Result, error),
) (sale.Result, error) {
	stop := context.AfterFunc(ctx, func() { f.leave(mine) })
	defer func() {
		stop()
		mine.cancel()
		f.mu.Lock()
		delete(f.running, id)
		f.mu.Unlock()
		close(mine.done)
	}()
	// A panic in fn must not hand its joiners an empty success.
	mine.result = busy(sale.ReasonDependency, id, true)
	mine.result, mine.err = fn(shared)
	return mine.result, mine.err
}

// leave ends the shared work when nobody is left who wants its answer.
func (f *inflight) leave(fl *flight) {
	f.mu.Lock()
	fl.waiting--
	last := fl.waiting == 0
	f.mu.Unlock()
	if last {
		fl.cancel()
	}
}

// busy is the BUSY verdict; unknown says that an order with this id may turn out to exist.
func busy(reason sale.Reason, id sale.OrderID, unknown bool) sale.Result {
	r := sale.Result{Code: sale.Busy, Reason: reason, Unknown: unknown}
	if unknown {
		r.Order.ID = id
	}
	return r
}
