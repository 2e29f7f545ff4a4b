package mqtest

import (
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// missedSoon: what was accepted while the broker was away is written soon after it is back, long before its rows are old
// enough for the other sweeper; and nodes that all missed something hardly publish each other's rows.
func missedSoon(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxSweepAfterMs = 3_600_000 })
	b.deliver("text/warm", nil)
	b.broker.Sleep(true)
	b.consumers()
	relays := []*mq.Relay{b.relay(), b.relay()}
	all := b.orders(1000)
	relays[0].Offer(slices.Clone(all[:600]))
	relays[1].Offer(slices.Clone(all[600:]))
	b.await("dropped", func() bool { return len(b.sent(b.names.Create)) >= 10+1 })
	b.broker.Sleep(false)
	begin := time.Now()
	b.awaitAll(all)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("written %v after the broker was back", took)
	}
	if n := b.store.Inserts(); n >= 2*len(all) {
		t.Errorf("%d orders arrived, %d were missed", n, len(all))
	}
}

// overflowSoon: orders that the relay's queue did not hold are published soon, too.
func overflowSoon(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxSweepAfterMs, c.RelayQueue = 3_600_000, 100 })
	b.consumers()
	all := b.orders(700)
	b.relay().Offer(slices.Clone(all))
	if n := b.counters.Snapshot().Overflowed; n < 600 {
		t.Fatalf("%d orders overflowed a queue of 100", n)
	}
	b.awaitAll(all)
}

// relayPaused: nothing is published while the relay is paused, and everything afterwards.
func relayPaused(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.deliver("text/warm", nil)
	published := len(b.broker.Published())
	b.switches.Pause(sale.ToggleRelay, true)
	relay := b.relay()
	all := b.orders(300)
	b.store.PutNotice(sale.TopicPaid, "", all[:1])
	relay.Offer(slices.Clone(all))
	b.await("left to the sweepers", func() bool { return b.counters.Snapshot().Overflowed == 300 })
	asked := b.switches.Asked(sale.ToggleRelay)
	b.await("all sweepers asked", func() bool { return b.switches.Asked(sale.ToggleRelay) > asked+50 })
	if n := len(b.broker.Published()); n != published || b.store.In(New) != 300 || b.store.Notices() != 1 {
		t.Fatalf("published %d messages while paused", n-published)
	}
	b.switches.Pause(sale.ToggleRelay, false)
	b.consumers()
	b.awaitAll(all)
	b.await("notice", func() bool { return b.store.Notices() == 0 })
}

// consumersPaused: nothing is written while consumers are paused, also not by one that is in the middle of trouble, what
// lies in the queue is not taken for lost, and everything is written afterwards.
func consumersPaused(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxRecheckAfterMs = 300 })
	b.store.SetDown(true)
	b.consumers()
	b.dead()
	relay := b.relay()
	all := b.orders(300)
	b.store.Refuse(ForEver, all[7])
	relay.Offer(slices.Clone(all))
	b.await("in trouble", func() bool { return b.store.Inserts() > 0 })
	b.switches.Pause(sale.ToggleConsumer, true)
	b.await("sent", func() bool { return b.store.In(Sent) == 300 })
	asked := b.switches.Asked(sale.ToggleConsumer)
	b.await("asked while paused", func() bool { return b.switches.Asked(sale.ToggleConsumer) > asked+20 })
	b.store.SetDown(false)
	renewed := b.counters.Snapshot().Renewed
	asked = b.switches.Asked(sale.ToggleConsumer)
	b.await("asked while paused", func() bool { return b.switches.Asked(sale.ToggleConsumer) > asked+50 })
	if s := b.counters.Snapshot(); b.store.Written() != 0 || s.Renewed != renewed {
		t.Fatalf("%d written while paused, %+v", b.store.Written(), s)
	}
	b.switches.Pause(sale.ToggleConsumer, false)
	b.await("written", func() bool { return b.store.Written() == 299 })
	b.await("buried", func() bool { return len(b.office.Letters()) == 1 })
	if err := b.store.Check(without(all, all[7])); err != nil {
		t.Fatal(err)
	}
}

// expiryPaused: due timeout messages wait while expiry is paused.
func expiryPaused(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	const window = 50 * time.Millisecond
	b.consumers()
	b.expiry()
	all := b.windowed(window, 100)
	b.warmDelay(window)
	b.switches.Pause(sale.ToggleExpiry, true)
	told := b.deliverAll(all)
	asked := b.switches.Asked(sale.ToggleExpiry)
	b.await("asked while paused", func() bool { return b.switches.Asked(sale.ToggleExpiry) > asked+5 })
	if n := b.office.Expired(); n != 0 {
		t.Fatalf("%d orders expired while paused", n)
	}
	b.switches.Pause(sale.ToggleExpiry, false)
	b.await("expired", func() bool { return b.office.Expired() == told && told > 0 })
}

// pointsFail: each point between two durable steps fails a few times, and everything ends as it should.
func pointsFail(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxRecheckAfterMs = 1000 })
	points := []sale.Point{
		sale.RelayPacked, sale.RelayConfirmed, sale.SweepClaimed, sale.NoticePublished, sale.ConsumerReceived,
		sale.ConsumerWritten, sale.RetryPublished, sale.ExpiryDelivered,
	}
	for _, p := range points {
		b.switches.Fail(p, 3)
	}
	const window = 50 * time.Millisecond
	all := b.windowed(window, 400)
	b.store.Refuse(ForEver, all[123])
	b.store.PutNotice(sale.TopicClosed, "", all[:3])
	b.consumers()
	b.dead()
	b.expiry()
	relay := b.relay()
	for group := range slices.Chunk(all, 50) {
		relay.Offer(slices.Clone(group))
	}
	b.await("written", func() bool { return b.store.Written() == 399 })
	b.await("marked", func() bool { return b.store.In(New) == 0 })
	b.await("notice", func() bool { return b.store.Notices() == 0 })
	b.await("buried", func() bool { return len(b.office.Letters()) == 1 })
	b.await("expired", func() bool { return b.office.Expired() > 0 })
	if err := b.store.Check(without(all, all[123])); err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if n := b.switches.Reached(p); n <= 3 {
			t.Errorf("%s was reached %d times", p, n)
		}
	}
}
