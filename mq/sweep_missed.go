package mq

import (
	"sync/atomic"
	"time"
)

// The sweeper of what this relay missed claims rows of missedAge, far longer than a row takes from its commit to its
// mark, so that it hardly ever publishes what is on its way, here or on other nodes. It looks once in a jittered
// missedPeriod, and after the last miss often enough that this row, too, was old enough at one look.
const (
	missedAge    = time.Second
	missedPeriod = 250 * time.Millisecond
	missedLooks  = int32(missedAge/(missedPeriod/2)) + 2
)

// missed remembers that rows stayed NEW though this relay was told of them.
type missed struct{ looks atomic.Int32 }

// note asks for some more looks.
func (m *missed) note() { m.looks.Store(missedLooks) }

// look tells whether a look is due.
func (m *missed) look() bool {
	for {
		n := m.looks.Load()
		if n == 0 {
			return false
		}
		if m.looks.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// sweepMissed makes up for a short loss of the broker, a pause, or a burst that the relay's queue did not hold, long
// before the rows are old enough for sweepNew. It waits while the broker is away, and while the relay is so far behind
// that rows of missedAge may still be in its queue.
func (r *Relay) sweepMissed() {
	age := min(missedAge, ms(r.cfg.OutboxSweepAfterMs))
	for {
		select {
		case <-r.closing:
			return
		case <-r.deps.After(jitter(missedPeriod)):
		}
		if !r.broker.Ready() || r.held() || r.ring.behind() || !r.missed.look() {
			continue
		}
		for more := true; more && !r.isClosing(); {
			var err error
			if more, err = r.sweepOlder(r.ctx, age); err != nil {
				r.missed.note()
				r.deps.Log.Warn("relay: a sweep failed and will be tried again", "sweep", "missed", "error", err)
				more = false
			}
		}
	}
}
