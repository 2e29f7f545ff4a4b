package cache

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"stockade/biz/sale"
)

// reads runs at most one read of a SKU at a time, and lets callers share it: those who come while it runs and can take
// its answer join it, all others join the next one, which starts when it ends. A single-flight group cannot do that: it
// lets callers join what began before they came, or, told to forget, starts a read for each of them.
type reads struct {
	max     int            // SKUs being read
	counter *atomic.Uint64 // numbers a read when it begins
	do      func(ctx context.Context, sku string, number uint64) *entry
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	tracks map[string]*track // one for each SKU being read
}

// track is one SKU's reads. Its goroutine ends when nobody waits for a next one.
type track struct {
	running *read
	next    *read // nil while nobody wants one
}

// read is one read of a SKU.
type read struct {
	number uint64        // drawn when it begins
	done   chan struct{} // closed when entry is there
	entry  *entry
}

func newReads(limit int, counter *atomic.Uint64, do func(context.Context, string, uint64) *entry) *reads {
	ctx, cancel := context.WithCancel(context.Background())
	return &reads{max: limit, counter: counter, do: do, ctx: ctx, cancel: cancel, tracks: map[string]*track{}}
}

// join returns the read to wait for: the running one if its number is above the floor, else the next one. Errors:
// sale.ErrQueueFull, sale.ErrShuttingDown.
func (rs *reads) join(sku string, floor uint64) (*read, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.ctx.Err() != nil {
		return nil, sale.ErrShuttingDown
	}
	t, ok := rs.tracks[sku]
	switch {
	case !ok && len(rs.tracks) >= rs.max:
		return nil, sale.ErrQueueFull
	case !ok:
		sku = strings.Clone(sku) // a view of a request's buffer might not outlive its caller
		t = &track{running: &read{number: rs.counter.Add(1), done: make(chan struct{})}}
		rs.tracks[sku] = t
		rs.done.Go(func() { rs.run(sku, t) })
		return t.running, nil
	case t.running.number > floor:
		return t.running, nil
	case t.next == nil:
		t.next = &read{done: make(chan struct{})}
	}
	return t.next, nil
}

func (rs *reads) run(sku string, t *track) {
	for r := t.running; r != nil; r = rs.advance(sku, t) {
		r.entry = rs.do(rs.ctx, sku, r.number)
	}
}

// advance ends the running read and returns the next one, or ends the track and returns nil. All in one step: nobody can
// join a read that is over.
func (rs *reads) advance(sku string, t *track) *read {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	close(t.running.done)
	t.running, t.next = t.next, nil
	if t.running == nil {
		delete(rs.tracks, sku)
	} else {
		t.running.number = rs.counter.Add(1)
	}
	return t.running
}

// close cuts short the reads that run or wait, and returns when all callers have their errors.
func (rs *reads) close() {
	rs.mu.Lock()
	rs.cancel()
	rs.mu.Unlock()
	rs.done.Wait()
}
