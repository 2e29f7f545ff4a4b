package mqtest

import (
	"context"
	"sync"

	"stockade/mq"
)

// Faults is a broker with troubles that a test switches on and off.
type Faults struct {
	mq.Broker

	mu      sync.Mutex
	asleep  bool
	twice   bool
	deaf    bool
	stuck   chan struct{}
	subs    []mq.Subscription
	publish []mq.Message
}

// WithFaults wraps a broker, without troubles at first.
func WithFaults(b mq.Broker) *Faults { return &Faults{Broker: b} }

// Sleep makes the broker be away, or come back.
func (f *Faults) Sleep(asleep bool) { f.set(func() { f.asleep = asleep }) }

// Duplicate makes every message arrive twice, or no longer.
func (f *Faults) Duplicate(twice bool) { f.set(func() { f.twice = twice }) }

// LoseConfirms lets messages arrive while their outcome is Unknown, or no longer.
func (f *Faults) LoseConfirms(deaf bool) { f.set(func() { f.deaf = deaf }) }

// Stick makes Publish wait until the returned function is called or its context ends.
func (f *Faults) Stick() (free func()) {
	stuck := make(chan struct{})
	f.set(func() { f.stuck = stuck })
	return sync.OnceFunc(func() { close(stuck) })
}

// Cut ends every subscription, as a lost connection would.
func (f *Faults) Cut() {
	f.mu.Lock()
	subs := f.subs
	f.subs = nil
	f.mu.Unlock()
	for _, s := range subs {
		s.Close()
	}
}

// Published lists every message that was to be published.
func (f *Faults) Published() []mq.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]mq.Message(nil), f.publish...)
}

func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Ready implements mq.Broker.
func (f *Faults) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.asleep && f.Broker.Ready()
}

// Publish implements mq.Broker.
func (f *Faults) Publish(ctx context.Context, m mq.Message, done func(mq.Outcome)) {
	f.mu.Lock()
	f.publish = append(f.publish, m)
	asleep, twice, deaf, stuck := f.asleep, f.twice, f.deaf, f.stuck
	f.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			done(mq.NotSent)
			return
		}
	}
	if asleep {
		done(mq.NotSent)
		return
	}
	if twice {
		f.Broker.Publish(ctx, m, func(mq.Outcome) {})
	}
	f.Broker.Publish(ctx, m, func(o mq.Outcome) {
		if deaf {
			o = mq.Unknown
		}
		done(o)
	})
}

// Subscribe implements mq.Broker.
func (f *Faults) Subscribe(ctx context.Context, queue string, prefetch int) (mq.Subscription, error) {
	s, err := f.Broker.Subscribe(ctx, queue, prefetch)
	if err == nil {
		f.set(func() { f.subs = append(f.subs, s) })
	}
	return s, err
}
