package mqtest

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// fuse is a breaker that a test opens.
type fuse struct {
	shut, refusing   atomic.Bool // says that it is open; refuses
	asked, sick, due atomic.Int64
}

var errOpen = errors.New("open")

func (f *fuse) Open() bool { return f.shut.Load() }

func (f *fuse) Allow() (func(error, time.Duration), error) {
	f.asked.Add(1)
	if f.refusing.Load() {
		return nil, errOpen
	}
	f.due.Add(1)
	return func(err error, took time.Duration) {
		f.due.Add(-1)
		if err != nil {
			f.sick.Add(1)
		}
	}, nil
}

// breakerOpen: an open breaker holds everything back, nothing is lost, and the breaker hears of every envelope once.
func breakerOpen(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	breaker := &fuse{}
	b.deps.Breaker = breaker
	b.deliver("text/warm", nil)
	published := len(b.broker.Published())
	breaker.shut.Store(true)
	relay := b.relay()
	first := b.orders(300)
	relay.Offer(slices.Clone(first))
	b.await("left to the sweepers", func() bool { return b.counters.Snapshot().Overflowed == 300 })
	if n := len(b.broker.Published()); n != published || b.store.In(New) != 300 || breaker.asked.Load() != 0 {
		t.Fatalf("published %d messages, asked %d times while it was open", n-published, breaker.asked.Load())
	}
	breaker.refusing.Store(true) // it lets one through, and no more: these see it refuse
	breaker.shut.Store(false)
	second := b.orders(200)
	relay.Offer(slices.Clone(second))
	b.await("envelopes refused", func() bool { return breaker.asked.Load() >= 2 })
	if n := len(b.broker.Published()); n != published {
		t.Fatalf("published %d messages that were refused", n-published)
	}
	breaker.refusing.Store(false)
	b.consumers()
	b.awaitAll(slices.Concat(first, second))
	b.await("every envelope told", func() bool { return breaker.due.Load() == 0 })
	if breaker.sick.Load() != 0 {
		t.Fatalf("%d envelopes that were confirmed count as bad", breaker.sick.Load())
	}
}

// breakerHears: an envelope whose confirm does not come is one that went wrong; a full queue is none.
func breakerHears(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	breaker := &fuse{}
	b.deps.Breaker = breaker
	b.consumers()
	relay := b.relay()
	b.broker.LoseConfirms(true)
	all := b.orders(100)
	relay.Offer(slices.Clone(all))
	b.await("the lost confirm is heard of", func() bool { return breaker.sick.Load() > 0 })
	b.broker.LoseConfirms(false)
	b.awaitAll(all)
	b.await("every envelope told", func() bool { return breaker.due.Load() == 0 })
}
