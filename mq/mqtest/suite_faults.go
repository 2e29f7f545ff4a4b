package mqtest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// deliver publishes one message to the order queue until it is confirmed: a queue that was just declared may refuse.
func (b *bench) deliver(contentType string, body []byte) {
	b.Helper()
	b.await("message confirmed", func() bool {
		outcome := make(chan mq.Outcome, 1)
		b.broker.Publish(context.Background(), mq.Message{
			Exchange: b.names.Orders, Key: b.names.Create, ID: "test", ContentType: contentType, Body: body, Mandatory: true,
		}, func(o mq.Outcome) { outcome <- o })
		select {
		case o := <-outcome:
			return o == mq.Confirmed
		case <-time.After(patience):
			b.Fatal("no outcome")
			return false
		}
	})
}

func consumerLostMidBatch(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.store.SetDown(true)
	b.consumers()
	all := b.orders(600)
	b.relay().Offer(slices.Clone(all))
	b.await("in the middle of a batch", func() bool { return b.store.Inserts() > 0 })
	b.broker.Cut()
	b.store.SetDown(false)
	b.awaitAll(all)
	b.await("acked", func() bool { return b.counters.Snapshot().Consumed >= uint64(len(all)) })
}

func requeueComesAgain(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.deliver("text/plain", []byte("again"))
	sub, err := b.broker.Subscribe(context.Background(), b.names.Create, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		d := <-sub.Deliveries()
		if string(d.Body) != "again" || d.ID != "test" || d.Redelivered != (i > 0) {
			t.Fatalf("delivery %d: %+v", i, d)
		}
		if err := sub.Requeue(d); err != nil {
			t.Fatal(err)
		}
	}
	d := <-sub.Deliveries()
	sub.Close()
	if err := sub.Ack(d); !errIsLost(err) {
		t.Fatalf("ack after close: %v", err)
	}
	if d := b.receive(b.names.Create, 1)[0]; !d.Redelivered {
		t.Fatalf("%+v", d)
	}
}

func unroutable(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxSweepAfterMs = 1000 })
	b.await("broker ready", b.broker.Ready)
	b.lab.DeleteQueue(b.names.Create)
	all := b.orders(100)
	relay := b.relay()
	relay.Offer(slices.Clone(all))
	b.await("returned", func() bool { return b.counters.Snapshot().Returned >= 1 })
	if n := b.store.In(New); n != 100 {
		t.Fatalf("%d rows NEW after their envelope was returned", n)
	}
	b.await("published again", func() bool { return b.store.In(Sent) == 100 })
	b.consumers()
	b.awaitAll(all)
	if ids := messageIDs(b.sent(b.names.Create)); len(ids) != 1 {
		t.Fatalf("the same orders went under %d message ids", len(ids))
	}
}

func queueFull(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.QueueMaxMessages = 3 })
	relay := b.relay()
	b.await("broker ready", b.broker.Ready)
	var all []sale.Order
	for b.counters.Snapshot().Rejected == 0 {
		group := b.orders(100)
		relay.Offer(slices.Clone(group))
		all = append(all, group...)
		b.await("an outcome", func() bool {
			s := b.counters.Snapshot()
			return s.Confirmed+s.Rejected >= uint64(len(all)/100)
		})
		if len(all) > 10_000 {
			t.Fatal("100 envelopes fit into a queue for 3")
		}
	}
	if b.store.In(New) == 0 {
		t.Fatal("a rejected envelope was marked")
	}
	b.consumers()
	b.awaitAll(all)
}

func confirmsLost(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.broker.LoseConfirms(true)
	b.consumers()
	all := b.orders(100)
	b.relay().Offer(slices.Clone(all))
	b.await("written though unconfirmed", func() bool { return b.store.Written() == 100 })
	if n := b.store.In(New); n != 100 {
		t.Fatalf("%d rows NEW although no confirm came", n)
	}
	b.broker.LoseConfirms(false)
	b.awaitAll(all)
	published := b.sent(b.names.Create)
	if ids := messageIDs(published); len(published) < 2 || len(ids) != 1 {
		t.Fatalf("%d publishings under %d message ids", len(published), len(ids))
	}
}

func brokerAsleep(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.broker.Sleep(true)
	b.consumers()
	relay := b.relay()
	all := b.orders(1000)
	relay.Offer(slices.Clone(all))
	b.await("dropped", func() bool { return len(b.broker.Published()) >= 10 })
	if b.store.In(New) != 1000 || b.store.Written() != 0 {
		t.Fatalf("%d NEW, %d written while the broker was away", b.store.In(New), b.store.Written())
	}
	b.broker.Sleep(false)
	b.awaitAll(all)
}

func offerOverflows(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.RelayQueue = 150 })
	relay := mq.NewRelay(b.lab.Config, b.deps, b.broker, b.store)
	t.Cleanup(relay.Close)
	all := b.orders(400)
	relay.Offer(slices.Clone(all))
	if n := b.counters.Snapshot().Overflowed; n != 250 {
		t.Fatalf("%d orders overflowed a queue of 150, 400 offered", n)
	}
	b.consumers()
	relay.Start()
	b.awaitAll(all)
	if n := b.counters.Snapshot().Swept; n < 250 {
		t.Fatalf("%d swept", n)
	}
}

// publishStuck: a publish that hangs stops neither Offer nor Close.
func publishStuck(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.RelayQueue, c.StopTimeoutMs = 100, 300 })
	free := b.broker.Stick()
	defer free()
	relay := mq.NewRelay(b.lab.Config, b.deps, b.broker, b.store)
	relay.Start()
	for range 50 {
		relay.Offer(b.orders(100))
	}
	if n := b.counters.Snapshot().Overflowed; n == 0 {
		t.Fatal("a queue of 100 took 5000 orders")
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		relay.Close()
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
	if n := b.store.In(New); n != 5000 {
		t.Fatalf("%d rows NEW though nothing was published", n)
	}
}

// queueLostWithMessages: the broker loses what it confirmed; SENT rows are looked into and go out again.
func queueLostWithMessages(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.OutboxRecheckAfterMs = 500 })
	all := b.orders(300)
	b.relay().Offer(slices.Clone(all))
	b.await("sent", func() bool { return b.store.In(Sent) == 300 })
	b.lab.DeleteQueue(b.names.Create)
	b.consumers()
	b.await("written", func() bool { return b.store.Written() == 300 })
	b.await("done", func() bool { return b.store.In(Done) == 300 })
	if err := b.store.Check(all); err != nil {
		t.Fatal(err)
	}
	if n := b.counters.Snapshot().Renewed; n < 300 {
		t.Fatalf("%d rows renewed", n)
	}
}

func twoRelays(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.SweepBatch = 70 })
	all := b.orders(1000) // never offered
	b.consumers()
	b.relay()
	b.relay()
	b.awaitAll(all)
}

func notices(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.await("broker ready", b.broker.Ready)
	queue := b.lab.Config.Prefix + ".test.events"
	b.lab.BindEvents(queue)
	t.Cleanup(func() { b.lab.DeleteQueue(queue) })
	b.broker.LoseConfirms(true)
	for i := range 5 {
		b.store.PutNotice(sale.TopicCreated, "", b.orders(i+1))
	}
	b.store.PutNotice(sale.TopicRefundRequired, "pay_7", b.orders(1))
	b.relay()
	for _, d := range b.receive(queue, 6) {
		var body struct {
			Orders  []sale.Order
			Payment *string `json:"payment_id"`
		}
		if err := json.Unmarshal(d.Body, &body); err != nil || d.ContentType != mq.NoticeType {
			t.Fatalf("%v: %+v", err, d)
		}
		refund := d.Key == sale.TopicRefundRequired
		if len(body.Orders) == 0 || refund != (body.Payment != nil && *body.Payment == "pay_7") {
			t.Fatalf("notice %s: %s", d.Key, d.Body)
		}
	}
	if n := b.store.Notices(); n != 6 {
		t.Fatalf("%d notices left although no confirm came", n)
	}
	b.broker.LoseConfirms(false)
	b.await("notices deleted", func() bool { return b.store.Notices() == 0 })
}

func closeDrains(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) {
		c.OutboxSweepAfterMs = 3_600_000
		c.StopTimeoutMs = int(patience.Milliseconds())
	})
	b.deliver("text/warm", nil) // a queue that takes one message takes them all
	relay := mq.NewRelay(b.lab.Config, b.deps, b.broker, b.store)
	relay.Start()
	all := b.orders(3000)
	relay.Offer(slices.Clone(all))
	relay.Close()
	relay.Close() // twice is harmless
	if n := b.store.In(Sent); n != 3000 {
		t.Fatalf("%d of 3000 rows SENT after Close", n)
	}
	late := b.orders(10)
	relay.Offer(slices.Clone(late))
	if n := b.counters.Snapshot().Overflowed; n != 10 {
		t.Fatalf("%d orders counted that were offered after Close", n)
	}
	consumers := b.consumers()
	b.await("written", func() bool { return b.store.Written() == 3000 })
	consumers.Close()
	if err := b.store.Check(all); err != nil {
		t.Fatal(err)
	}
}

func closedBroker(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.await("broker ready", b.broker.Ready)
	sub, err := b.broker.Subscribe(context.Background(), b.names.Create, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.broker.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open := <-sub.Deliveries(); open {
		t.Fatal("a subscription outlived its broker")
	}
	if b.broker.Ready() {
		t.Fatal("ready after Close")
	}
	if _, err := b.broker.Subscribe(context.Background(), b.names.Create, 5); !errIsLost(err) {
		t.Fatalf("subscribe after Close: %v", err)
	}
	outcome := make(chan mq.Outcome, 1)
	b.broker.Publish(context.Background(), mq.Message{Exchange: b.names.Orders}, func(o mq.Outcome) { outcome <- o })
	if o := <-outcome; o != mq.NotSent {
		t.Fatalf("publish after Close: %v", o)
	}
}

// sent lists the messages that were published under a routing key.
func (b *bench) sent(key string) []mq.Message {
	return slices.DeleteFunc(b.broker.Published(), func(m mq.Message) bool { return m.Key != key })
}

func messageIDs(all []mq.Message) map[string]bool {
	ids := map[string]bool{}
	for _, m := range all {
		ids[m.ID] = true
	}
	return ids
}
