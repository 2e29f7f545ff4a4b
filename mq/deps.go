package mq

import (
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stockade/biz/sale"
)

// Breaker keeps envelopes away from a broker that is sick. Package limiter implements it.
type Breaker interface {
	// Allow asks for one envelope. Otherwise than with an error, done must be called once with what went wrong, or nil, and
	// how long the broker took.
	Allow() (done func(err error, took time.Duration), err error)
	// Open tells, without asking for an envelope, whether it would be refused now.
	Open() bool
}

// noBreaker is the breaker of a relay that was given none.
type noBreaker struct{}

func (noBreaker) Allow() (func(error, time.Duration), error) {
	return func(error, time.Duration) {}, nil
}

func (noBreaker) Open() bool { return false }

// Deps is what the parts of this package share besides their Config. The zero value works.
type Deps struct {
	Log *slog.Logger // default: discard
	// After is time.After in production; a test hands out channels of its own.
	After func(time.Duration) <-chan time.Time
	// Paused tells whether an operator paused the work of a toggle: sale.ToggleRelay, sale.ToggleConsumer or
	// sale.ToggleExpiry. Default: never. It is asked often and must not block.
	Paused func(toggle string) bool
	// Breaker is asked by the relay before each envelope. Default: none.
	Breaker Breaker
	// Faults decides what happens between durable steps; default sale.NoFaults.
	Faults sale.Faults
	// Counters are raised by whoever gets them; give all parts of a process the same.
	Counters *Counters
}

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.After == nil {
		d.After = time.After
	}
	if d.Paused == nil {
		d.Paused = func(string) bool { return false }
	}
	if d.Breaker == nil {
		d.Breaker = noBreaker{}
	}
	if d.Faults == nil {
		d.Faults = sale.NoFaults{}
	}
	if d.Counters == nil {
		d.Counters = new(Counters)
	}
	return d
}

// Counters counts since the start of the process. Read them with Snapshot.
type Counters struct {
	published, confirmed, returned, rejected, unknown, notSent atomic.Uint64
	reconnects                                                 atomic.Uint64
	overflowed, marked, swept, renewed                         atomic.Uint64
	consumed, retried, refused, undecodable, buried            atomic.Uint64
	timeouts, timeoutsSkipped, expired, unreadTimeouts         atomic.Uint64
}

// Snapshot is a reading of Counters.
type Snapshot struct {
	// Messages, by what became of them. Published is those that left this process: the sum of the next four and what
	// is in flight.
	Published, Confirmed, Returned, Rejected, Unknown uint64
	NotSent                                           uint64 // messages that never left, because the broker was away or blocked
	Reconnects                                        uint64 // times a connection was lost, or could not be made

	Overflowed uint64 // orders that the relay left to its sweepers: its queue was full, or it was paused or closed
	Marked     uint64 // outbox rows marked SENT
	Swept      uint64 // orders that a sweeper claimed to publish
	Renewed    uint64 // SENT rows that became NEW again

	Consumed    uint64 // orders handed to the store and acked, repetitions counted
	Retried     uint64 // poison events put into a retry tier, each time counted
	Refused     uint64 // poison orders put into the dead queue
	Undecodable uint64 // events and envelopes put there because they cannot be read
	Buried      uint64 // dead letters taken out of the dead queue, repetitions counted

	Timeouts        uint64 // orders whose timeout message the broker has
	TimeoutsSkipped uint64 // orders left to the expiry sweeper
	Expired         uint64 // order ids handed on because their timeout message came
	UnreadTimeouts  uint64 // timeout messages dropped because they cannot be read
}

// Snapshot reads every counter. The readings are not of one instant.
func (c *Counters) Snapshot() Snapshot {
	return Snapshot{
		Published:   c.published.Load(),
		Confirmed:   c.confirmed.Load(),
		Returned:    c.returned.Load(),
		Rejected:    c.rejected.Load(),
		Unknown:     c.unknown.Load(),
		NotSent:     c.notSent.Load(),
		Reconnects:  c.reconnects.Load(),
		Overflowed:  c.overflowed.Load(),
		Marked:      c.marked.Load(),
		Swept:       c.swept.Load(),
		Renewed:     c.renewed.Load(),
		Consumed:    c.consumed.Load(),
		Refused:     c.refused.Load(),
		Retried:     c.retried.Load(),
		Undecodable: c.undecodable.Load(),
		Buried:      c.buried.Load(),

		Timeouts:        c.timeouts.Load(),
		TimeoutsSkipped: c.timeoutsSkipped.Load(),
		Expired:         c.expired.Load(),
		UnreadTimeouts:  c.unreadTimeouts.Load(),
	}
}

func (c *Counters) count(o Outcome) {
	switch o {
	case Confirmed:
		c.confirmed.Add(1)
	case Returned:
		c.returned.Add(1)
	case Rejected:
		c.rejected.Add(1)
	case Unknown:
		c.unknown.Add(1)
	case NotSent:
		c.notSent.Add(1)
	}
}

// backoff is a wait that doubles from min to max. Half of each wait is random, so that nodes which lost the same
// server do not return together.
type backoff struct{ min, max, next time.Duration }

func (b *backoff) wait() time.Duration {
	b.next = min(max(b.next*2, b.min), b.max)
	return jitter(b.next)
}

func (b *backoff) reset() { b.next = 0 }

// jitter returns a duration between half of d and d.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
