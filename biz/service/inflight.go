package service

import (
	"context"
	"sync"

	"stockade/biz/sale"
)

// inflight joins requests of the same order id that run on this node at the same time: one of them goes to the gate,
// the others get its answer. It holds one entry for each keyed request that is running.
type inflight struct {
	mu      sync.Mutex
	running map[sale.OrderID]*flight
}

type flight struct {
	quantity int64
	done     chan struct{}
	result   sale.Result
	err      error
}

func newInflight() *inflight { return &inflight{running: map[sale.OrderID]*flight{}} }

// do runs fn, or waits for the one that runs already. The same id with another quantity is sale.ErrKeyReused.
func (f *inflight) do(ctx context.Context, id sale.OrderID, quantity int64, fn func() (sale.Result, error)) (sale.Result, error) {
	f.mu.Lock()
	if running, ok := f.running[id]; ok {
		f.mu.Unlock()
		return running.join(ctx, id, quantity)
	}
	mine := &flight{quantity: quantity, done: make(chan struct{})}
	f.running[id] = mine
	f.mu.Unlock()

	defer func() {
		f.mu.Lock()
		delete(f.running, id)
		f.mu.Unlock()
		close(mine.done)
	}()
	// A panic in fn must not hand its joiners an empty success.
	mine.result = busy(sale.ReasonDependency, id, true)
	mine.result, mine.err = fn()
	return mine.result, mine.err
}

func (r *flight) join(ctx context.Context, id sale.OrderID, quantity int64) (sale.Result, error) {
	if r.quantity != quantity {
		return sale.Result{}, sale.ErrKeyReused
	}
	select {
	case <-r.done:
		joined := r.result
		joined.Replayed = joined.Code == sale.Accepted
		return joined, r.err
	case <-ctx.Done():
		return busy(sale.ReasonDependency, id, true), nil
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
