package mqtest

import (
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// deliverAll publishes orders, each in one envelope, and waits until they are written and have their timeout messages. It
// returns how many have one. Without a relay there are no repetitions.
func (b *bench) deliverAll(all []sale.Order) int {
	b.Helper()
	for chunk := range slices.Chunk(all, mq.MaxEnvelopeOrders) {
		b.deliverOrders(chunk)
	}
	b.await("written", func() bool { return b.store.Written() == len(all) })
	b.await("timeout messages", func() bool {
		s := b.counters.Snapshot()
		return s.Timeouts+s.TimeoutsSkipped == uint64(len(all))
	})
	return int(b.counters.Snapshot().Timeouts)
}

// windowed makes orders with a payment window of their own, whose queues the lab will remove.
func (b *bench) windowed(window time.Duration, n int) []sale.Order {
	b.lab.Windows = append(b.lab.Windows, window)
	out := make([]sale.Order, n)
	for i := range out {
		b.made++
		out[i] = NewOrder(b.rng, b.made)
		out[i].ExpiresAt = out[i].AcceptedAt.Add(window)
	}
	b.store.Put(out)
	return out
}

// warmDelay makes the delay queue of a window take messages: one that was just declared may refuse.
func (b *bench) warmDelay(window time.Duration) {
	b.Helper()
	b.await("delay queue", func() bool {
		outcome := make(chan mq.Outcome, 1)
		b.broker.Publish(b.Context(), mq.Message{
			Exchange: b.names.Orders, Key: b.names.Delay(window), ID: "warm", Delay: window, Mandatory: true,
		}, func(o mq.Outcome) { outcome <- o })
		return <-outcome == mq.Confirmed
	})
	b.await("warm message dropped", func() bool { return b.counters.Snapshot().UnreadTimeouts == 1 })
}

// delayedOnce: timeout messages come when the payment window has ended, not before, each once.
func delayedOnce(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	const window = 400 * time.Millisecond
	b.consumers()
	b.expiry()
	all := b.windowed(window, 250)
	b.warmDelay(window)
	begin := time.Now()
	told := b.deliverAll(all)
	b.await("expired", func() bool { return b.office.Expired() == told && told > 0 })
	b.await("acked", func() bool { return b.counters.Snapshot().Expired == uint64(told) })
	for _, o := range all {
		at := b.office.ExpiredAt(o.ID)
		if len(at) > 1 || len(at) == 1 && at[0].Sub(begin) < window {
			t.Fatalf("order %s was expired %d times, first after %v; its window is %v", o.ID, len(at), at[0].Sub(begin), window)
		}
	}
}

// expiryInBulk: what piled up is handed on in batches, and nothing is acked while that fails.
func expiryInBulk(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	const window = 100 * time.Millisecond
	b.office.SetDown(true)
	b.consumers()
	all := b.windowed(window, 3000)
	b.expiry()
	b.warmDelay(window)
	told := b.deliverAll(all)
	b.await("refused", func() bool { return b.office.Refusals() >= 3 })
	if s := b.counters.Snapshot(); s.Expired != 0 || told == 0 {
		t.Fatalf("%d told, %+v", told, s)
	}
	b.office.SetDown(false)
	b.broker.Cut()
	b.await("expired", func() bool { return b.office.Expired() == told })
	batches := b.office.Batches()
	if most := slices.Max(batches); most > 500 || most < 200 {
		t.Fatalf("batches of %v orders", batches)
	}
}

// delaysBounded: payment windows beyond the 32nd, and impossible ones, get no queue and do no harm.
func delaysBounded(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	var all []sale.Order
	for i := range 40 {
		all = append(all, b.windowed(time.Hour+time.Duration(i)*time.Minute, 1)...)
	}
	all = append(all, b.windowed(100*365*24*time.Hour, 1)...) // longer than any queue's messages may live
	b.consumers()
	told := b.deliverAll(all)
	keys := map[string]bool{}
	for _, m := range b.broker.Published() {
		if m.Delay > 0 {
			keys[m.Key] = true
		}
	}
	if len(keys) > 32 || told > 32 || told == 0 {
		t.Fatalf("%d delay queues, %d orders told", len(keys), told)
	}
	if s := b.counters.Snapshot(); s.Refused+s.Retried != 0 || s.TimeoutsSkipped < 9 {
		t.Fatalf("%+v", s)
	}
}
