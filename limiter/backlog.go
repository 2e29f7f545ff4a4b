package limiter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stockade/biz/sale"
)

// Bounds of the backlog breaker.
const (
	backlogEvery   = 2 * time.Second // between two counts
	backlogTimeout = time.Second     // of one count
	backlogClose   = 90              // percent of the most: below it the breaker closes
	backlogSay     = time.Minute     // between two words in the log about counts that fail
)

// Backlog is the breaker that stops selling while too many accepted orders wait for the broker to take them.
type Backlog struct {
	most  int64
	parts BacklogParts
	open  atomic.Bool
	count atomic.Int64 // -1: not known

	mu   sync.Mutex
	last BreakerState
	bad  error     // of the last count
	said time.Time // when the log heard of it last
}

// BacklogParts are what a Backlog needs.
type BacklogParts struct {
	// Count counts the orders that wait, of all nodes, and stops at limit.
	Count  func(ctx context.Context, limit int64) (int64, error)
	Forced func(name string) string // see BreakerParts
	Now    func() time.Time
	Log    *slog.Logger
}

// NewBacklog returns a breaker that is closed until Run or Look has counted.
func NewBacklog(cfg Config, p BacklogParts) *Backlog {
	if p.Forced == nil {
		p.Forced = func(string) string { return sale.BreakerAuto }
	}
	b := &Backlog{
		most: int64(cfg.BacklogMaxEvents), parts: p,
		last: BreakerState{Name: sale.BreakerBacklog, State: sale.BreakerClosed},
	}
	b.count.Store(-1)
	return b
}

// Open tells whether purchases are to be refused.
func (b *Backlog) Open() bool {
	switch b.parts.Forced(sale.BreakerBacklog) {
	case sale.BreakerOpen:
		return true
	case sale.BreakerClosed:
		return false
	}
	return b.open.Load()
}

// Waiting is how many orders wait, at most the configured most; it is not known when the last count failed.
func (b *Backlog) Waiting() (n int64, known bool) {
	n = b.count.Load()
	return max(n, 0), n >= 0
}

// Run counts every two seconds until ctx ends.
func (b *Backlog) Run(ctx context.Context) {
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	for {
		b.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look counts once. A count that fails leaves the breaker as it is; State says so.
func (b *Backlog) Look(ctx context.Context) {
	once, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	n, err := b.parts.Count(once, b.most)
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad = err
	if err != nil {
		if now := b.parts.Now(); b.said.IsZero() || now.Sub(b.said) >= backlogSay {
			b.said = now
			b.parts.Log.WarnContext(ctx, "the backlog cannot be counted, its breaker stays as it is", "error", err)
		}
		b.count.Store(-1)
		return
	}
	b.count.Store(n)
	switch open := b.open.Load(); {
	case !open && n >= b.most:
		b.change(sale.BreakerOpen, fmt.Sprintf("%d accepted orders or more wait for the broker", n))
	case open && n < b.most*backlogClose/100:
		b.change(sale.BreakerClosed, fmt.Sprintf("%d accepted orders wait for the broker", n))
	}
}

func (b *Backlog) change(state, why string) {
	from := b.last.State
	b.last.State, b.last.Why, b.last.Since = state, why, b.parts.Now()
	b.last.Changes++
	b.open.Store(state == sale.BreakerOpen)
	b.parts.Log.Warn("breaker "+state, "breaker", b.last.Name, "from", from, "why", why)
}

// State is the breaker's state now.
func (b *Backlog) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.last
	if b.bad != nil {
		s.Why = fmt.Sprintf("it stays as it is, the orders that wait cannot be counted: %v", b.bad)
	}
	return s.forcedBy(b.parts.Forced)
}

// forcedBy is the state as an operator may have overruled it.
func (s BreakerState) forcedBy(forced func(string) string) BreakerState {
	if f := forced(s.Name); f == sale.BreakerOpen || f == sale.BreakerClosed {
		s.State, s.Forced, s.Why = f, true, "forced by an operator"
	}
	return s
}
