package mqtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"stockade/biz/sale"
	"stockade/mq"
)

// Run runs the suite.
func Run(t *testing.T, newLab NewLab) {
	for _, c := range []struct {
		name string
		test func(*testing.T, NewLab)
	}{
		{"EveryOfferArrivesAndIsMarked", everyOfferArrivesAndIsMarked},
		{"DeliveredTwice", deliveredTwice},
		{"PoisonAmongGood", poisonAmongGood},
		{"InvalidOrderAmongGood", invalidOrderAmongGood},
		{"ParkingWaitsForItsConfirm", parkingWaitsForItsConfirm},
		{"UnreadableIsParkedWhole", unreadableIsParkedWhole},
		{"RetryTiersInTurn", retryTiersInTurn},
		{"RetrySucceeds", retrySucceeds},
		{"UnreadableAmongGood", unreadableAmongGood},
		{"LettersOnce", lettersOnce},
		{"ReplayIsIdempotent", replayIsIdempotent},
		{"HugeLetter", hugeLetter},
		{"TierFull", tierFull},
		{"DelayedOnce", delayedOnce},
		{"ExpiryInBulk", expiryInBulk},
		{"DelaysBounded", delaysBounded},
		{"MissedSoon", missedSoon},
		{"OverflowSoon", overflowSoon},
		{"RelayPaused", relayPaused},
		{"BreakerOpen", breakerOpen},
		{"BreakerHears", breakerHears},
		{"ConsumersPaused", consumersPaused},
		{"ExpiryPaused", expiryPaused},
		{"PointsFail", pointsFail},
		{"StoreDown", storeDown},
		{"ConsumerLostMidBatch", consumerLostMidBatch},
		{"RequeueComesAgain", requeueComesAgain},
		{"Unroutable", unroutable},
		{"QueueFull", queueFull},
		{"ConfirmsLost", confirmsLost},
		{"BrokerAsleep", brokerAsleep},
		{"OfferOverflows", offerOverflows},
		{"PublishStuck", publishStuck},
		{"QueueLostWithMessages", queueLostWithMessages},
		{"TwoRelays", twoRelays},
		{"Notices", notices},
		{"CloseDrains", closeDrains},
		{"ClosedBroker", closedBroker},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newLab) })
	}
}

func everyOfferArrivesAndIsMarked(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxSweepAfterMs = 3_600_000 })
	b.deliver("text/warm", nil) // a queue that takes one message takes them all; it is parked
	b.consumers()
	b.await("parked", func() bool { return b.counters.Snapshot().Undecodable == 1 })
	relay := b.relay()
	var all []sale.Order
	for len(all) < 2000 {
		group := b.orders(1 + b.rng.IntN(400))
		relay.Offer(slices.Clone(group))
		all = append(all, group...)
	}
	b.awaitAll(all)
	b.await("an outcome for every message", func() bool {
		s := b.counters.Snapshot()
		return s.Confirmed+s.Rejected == s.Published
	})
	if s := b.counters.Snapshot(); s.Marked != uint64(len(all)) || s.Swept+s.Refused+s.Overflowed != 0 {
		t.Fatalf("%d orders: %+v", len(all), s)
	}
	if b.store.Inserts() != len(all) {
		t.Fatalf("%d orders were given to the store, %d offered", b.store.Inserts(), len(all))
	}
}

func deliveredTwice(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.broker.Duplicate(true)
	b.consumers()
	all := b.orders(500)
	b.relay().Offer(all)
	b.awaitAll(all)
	b.await("each order seen twice", func() bool { return b.counters.Snapshot().Consumed >= 1000 })
	if err := b.store.Check(all); err != nil {
		t.Fatal(err)
	}
	if s := b.counters.Snapshot(); s.Refused+s.Undecodable != 0 {
		t.Fatalf("repetitions were parked: %+v", s)
	}
}

func poisonAmongGood(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	all := b.orders(100)
	bad := all[b.rng.IntN(100)]
	b.store.Refuse(ForEver, bad)
	b.consumers()
	b.relay().Offer(slices.Clone(all))
	good := slices.DeleteFunc(slices.Clone(all), func(o sale.Order) bool { return o == bad })
	b.awaitAll(good)

	d := b.receive(b.names.Dead, 1)[0]
	parked, err := mq.DecodeEnvelope(d.ContentType, d.Body)
	if err != nil || len(parked) != 1 || parked[0] != bad {
		t.Fatalf("parked %+v, %v; want %+v", parked, err, bad)
	}
	if d.ID != bad.ID.String() || d.Headers[mq.HeaderError] != ErrPoison.Error() || d.Headers[mq.HeaderSource] != b.names.Create {
		t.Fatalf("parked as %q with headers %v", d.ID, d.Headers)
	}
	// A slow confirm lets the sweeper repeat the envelope, and so the parking.
	b.await("counted", func() bool { return b.counters.Snapshot().Refused >= 1 })
	if s := b.counters.Snapshot(); s.Undecodable != 0 {
		t.Fatalf("%+v", s)
	}
}

// parkingWaitsForItsConfirm: a poison event that the dead queue does not take yet must not be acked.
func parkingWaitsForItsConfirm(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	all := b.orders(50)
	b.store.Refuse(ForEver, all[7])
	b.relay().Offer(slices.Clone(all))
	b.await("sent", func() bool { return b.store.In(Sent) == 50 })
	b.broker.Sleep(true)
	b.consumers()
	b.await("parking tried", func() bool {
		tries := 0
		for _, m := range b.broker.Published() {
			if m.Key == b.names.Retry[0] {
				tries++
			}
		}
		return tries >= 3
	})
	if s := b.counters.Snapshot(); s.Consumed+s.Refused+s.Retried != 0 {
		t.Fatalf("acked or counted before it was confirmed: %+v", s)
	}
	b.broker.Sleep(false)
	if d := b.receive(b.names.Dead, 1)[0]; d.ID != all[7].ID.String() {
		t.Fatalf("parked %+v", d)
	}
	b.await("acked", func() bool { return b.counters.Snapshot().Consumed >= 50 })
	if err := b.store.Check(slices.Delete(all, 7, 8)); err != nil {
		t.Fatal(err)
	}
}

// invalidOrderAmongGood sends an order that can be read but breaks the rules of an order.
func invalidOrderAmongGood(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	good := b.orders(20)
	bad := NewOrder(b.rng, 1_000_000)
	bad.Quantity = 0
	body, err := mq.EncodeEnvelope(append(slices.Clone(good), bad))
	if err != nil {
		t.Fatal(err)
	}
	b.consumers()
	b.deliver(mq.EnvelopeType, body)
	b.await("good orders written", func() bool { return b.store.Written() == len(good) })
	d := b.receive(b.names.Dead, 1)[0]
	if !strings.Contains(d.Headers[mq.HeaderError], "quantity") || d.ID != bad.ID.String() {
		t.Fatalf("parked %q with headers %v", d.ID, d.Headers)
	}
	if err := b.store.Check(good); err != nil {
		t.Fatal(err)
	}
}

func unreadableIsParkedWhole(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.consumers()
	body := []byte(`{"orders":[{"order_id":7}]}`)
	b.deliver("text/odd", body)
	d := b.receive(b.names.Dead, 1)[0]
	if string(d.Body) != string(body) || d.ContentType != "text/odd" || d.Headers[mq.HeaderError] == "" {
		t.Fatalf("parked %+v", d)
	}
	all := b.orders(150)
	b.relay().Offer(all)
	b.awaitAll(all)
	b.await("counted", func() bool { return b.counters.Snapshot().Undecodable == 1 })
	if s := b.counters.Snapshot(); s.Refused != 0 {
		t.Fatalf("%+v", s)
	}
}

// storeDown also replaces the consumers in the middle: what they held unacked must reach the new ones.
func storeDown(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.store.SetDown(true)
	first := b.consumers()
	all := b.orders(700)
	relay := b.relay()
	relay.Offer(slices.Clone(all))
	b.await("tried while down", func() bool { return b.store.Inserts() > 2*len(all) })
	first.Close()
	if s := b.counters.Snapshot(); s.Consumed+s.Refused+s.Undecodable != 0 {
		t.Fatalf("acked or parked while the store was down: %+v", s)
	}
	b.consumers()
	more := b.orders(100)
	relay.Offer(slices.Clone(more))
	tried := b.store.Inserts()
	b.await("tried again while down", func() bool { return b.store.Inserts() > tried })
	b.store.SetDown(false)
	b.awaitAll(append(all, more...))
	b.await("acked", func() bool { return b.counters.Snapshot().Consumed >= 800 })
	if s := b.counters.Snapshot(); s.Refused != 0 {
		t.Fatalf("%+v", s)
	}
}

// errIsLost tells whether a subscription's answer is the documented one.
func errIsLost(err error) bool { return errors.Is(err, mq.ErrLost) }
