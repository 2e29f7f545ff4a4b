package mq_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"stockade/mq"
	"stockade/mq/mqtest"
)

// timers hands out channels instead of time.
type timers struct {
	mu    sync.Mutex
	waits []time.Duration
	chans []chan time.Time
}

func (f *timers) after(d time.Duration) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan time.Time, 1)
	f.waits = append(f.waits, d)
	f.chans = append(f.chans, c)
	return c
}

func (f *timers) asked() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.waits)
}

func (f *timers) fire(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chans[i] <- time.Time{}
}

func (f *timers) await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(f.asked()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d timers, want %d", len(f.asked()), n)
		}
	}
}

func publish(t *testing.T, b mq.Broker, m mq.Message) mq.Outcome {
	t.Helper()
	outcome := make(chan mq.Outcome, 1)
	b.Publish(t.Context(), m, func(o mq.Outcome) { outcome <- o })
	return <-outcome
}

// The memory broker holds messages by the timers that it is given, in their order, never drops one because the next
// queue is full, and does not hold more than its limit.
func TestMemoryHoldsMessages(t *testing.T) {
	cfg := mqtest.Config()
	cfg.Driver, cfg.QueueMaxMessages, cfg.PauseMinMs = mq.DriverMemory, 2, 77
	fake := &timers{}
	broker := mq.NewMemory(cfg, mq.Deps{After: fake.after})
	defer func() { _ = broker.Close() }()
	names := mq.NamesFor(cfg.Prefix)
	tier := func(id string) mq.Message {
		return mq.Message{Exchange: names.Orders, Key: names.Retry[1], ID: id, Mandatory: true}
	}
	for i, want := range []mq.Outcome{mq.Confirmed, mq.Confirmed, mq.Rejected} {
		if got := publish(t, broker, tier(string(rune('a'+i)))); got != want {
			t.Fatalf("message %d: %v, want %v", i, got, want)
		}
	}
	if waits := fake.asked(); len(waits) != 2 || waits[0] != 40*time.Millisecond {
		t.Fatalf("waits %v", waits)
	}
	for range 2 { // the next queue is full
		if o := publish(t, broker, mq.Message{Exchange: names.Orders, Key: names.Create, ID: "x"}); o != mq.Confirmed {
			t.Fatal(o)
		}
	}
	fake.fire(1) // due, but behind the first
	fake.fire(0)
	fake.await(t, 3)
	if waits := fake.asked(); waits[2] != 77*time.Millisecond {
		t.Fatalf("waits %v", waits)
	}
	sub, err := broker.Subscribe(t.Context(), names.Create, 10)
	if err != nil {
		t.Fatal(err)
	}
	fake.fire(2)
	var ids []string
	for range 4 {
		select {
		case d := <-sub.Deliveries():
			ids = append(ids, d.ID)
		case <-time.After(10 * time.Second):
			t.Fatalf("only %v arrived", ids)
		}
	}
	if !slices.Equal(ids, []string{"x", "x", "a", "b"}) {
		t.Fatalf("arrived %v", ids)
	}
	if o := publish(t, broker, tier("again")); o != mq.Confirmed {
		t.Fatal(o)
	}
	fake.await(t, 4)
	broker.DeleteQueue(names.Retry[1]) // with what it holds
	fake.fire(3)
	if o := publish(t, broker, tier("gone")); o != mq.Returned {
		t.Fatal(o)
	}
}
