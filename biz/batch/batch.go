// Package batch gathers the calls of many goroutines into groups: while one group is being served, the next one
// gathers. So batching costs no delay when a caller is alone, and grows by itself under load.
package batch

import (
	"context"
	"sync"
	"sync/atomic"

	"stockade/biz/sale"
)

// Config bounds a Batcher.
type Config struct {
	Queue    int // calls that may wait; one more is sale.ErrQueueFull
	MaxGroup int // calls served together
	Workers  int // groups being served at the same time
}

// A call is waiting, then either sent (a group took it) or abandoned (its caller left first).
const (
	waiting int32 = iota
	sent
	abandoned
)

// Call is one caller's query on its way through a Batcher.
type Call[Q, R any] struct {
	Query Q
	state atomic.Int32
	reply chan outcome[R] // holds 1, so that Answer never blocks
}

type outcome[R any] struct {
	result R
	err    error
}

// Answer gives the caller its result or its error. A group's server calls it exactly once for each call.
func (c *Call[Q, R]) Answer(result R, err error) { c.reply <- outcome[R]{result, err} }

// Batcher serves calls in groups.
type Batcher[Q, R any] struct {
	cfg   Config
	serve func(group []*Call[Q, R])
	queue chan *Call[Q, R]

	mu     sync.RWMutex // guards closed against senders on queue
	closed bool
	done   sync.WaitGroup
}

// New starts cfg.Workers workers. serve is called with 1 to cfg.MaxGroup calls, must answer each of them, and must not
// keep the slice.
func New[Q, R any](cfg Config, serve func(group []*Call[Q, R])) *Batcher[Q, R] {
	b := &Batcher[Q, R]{cfg: cfg, serve: serve, queue: make(chan *Call[Q, R], cfg.Queue)}
	for range cfg.Workers {
		b.done.Go(b.work)
	}
	return b
}

// Do has the query served and returns its result.
//
// Errors: sale.ErrQueueFull, sale.ErrShuttingDown and sale.ErrNotSent (ctx ended while the call was waiting) mean that
// the query was never served. When ctx ends while it is being served, the error is ctx's and the outcome is unknown.
// All others come from the server.
func (b *Batcher[Q, R]) Do(ctx context.Context, query Q) (R, error) {
	var none R
	call := &Call[Q, R]{Query: query, reply: make(chan outcome[R], 1)}
	if err := b.enqueue(call); err != nil {
		return none, err
	}
	select {
	case o := <-call.reply:
		return o.result, o.err
	case <-ctx.Done():
	}
	if call.state.CompareAndSwap(waiting, abandoned) {
		return none, sale.ErrNotSent
	}
	select { // the answer may have come together with the end of ctx
	case o := <-call.reply:
		return o.result, o.err
	default:
		return none, ctx.Err()
	}
}

// Waiting is the number of calls in the queue.
func (b *Batcher[Q, R]) Waiting() int { return len(b.queue) }

// Close serves what waits, then stops the workers. Later calls get sale.ErrShuttingDown.
func (b *Batcher[Q, R]) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.queue)
	}
	b.mu.Unlock()
	b.done.Wait()
}

func (b *Batcher[Q, R]) enqueue(call *Call[Q, R]) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return sale.ErrShuttingDown
	}
	select {
	case b.queue <- call:
		return nil
	default:
		return sale.ErrQueueFull
	}
}

func (b *Batcher[Q, R]) work() {
	group := make([]*Call[Q, R], 0, b.cfg.MaxGroup)
	for first := range b.queue {
		group = b.gather(append(group[:0], first))
		if len(group) > 0 {
			b.serve(group)
		}
		clear(group) // let go of served calls while idle
	}
}

// gather adds what waits already to the group, up to MaxGroup, leaving out calls whose caller is gone.
func (b *Batcher[Q, R]) gather(group []*Call[Q, R]) []*Call[Q, R] {
	if !group[0].state.CompareAndSwap(waiting, sent) {
		group = group[:0]
	}
	for len(group) < b.cfg.MaxGroup {
		select {
		case call, open := <-b.queue:
			if !open {
				return group
			}
			if call.state.CompareAndSwap(waiting, sent) {
				group = append(group, call)
			}
		default:
			return group
		}
	}
	return group
}
