//go:build services

package mq_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/mq/mqtest"
)

// away is a broker behind a proxy, with the whole path around it.
type away struct {
	*testing.T
	proxy    *proxy
	cfg      mq.Config
	deps     mq.Deps
	counters *mq.Counters
	broker   mq.Broker
	relay    *mq.Relay
	store    *mqtest.Store
	rng      *rand.Rand
	all      []sale.Order
}

func goAway(t *testing.T) *away { return goAwayWith(t, func(*mq.Config) {}) }

func goAwayWith(t *testing.T, tune func(*mq.Config)) *away {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := &away{T: t, counters: new(mq.Counters), store: mqtest.NewStore(), rng: rand.New(rand.NewPCG(seed, 1))}
	lab := mqtest.NewRabbitLab(mq.QueueQuorum)(t, func(c *mq.Config) {
		var through string
		a.proxy, through = newProxy(t, c.URL)
		c.URL = through
		c.ConnectTimeoutMs, c.WriteTimeoutMs, c.ConfirmTimeoutMs = 500, 500, 1000
		c.HeartbeatMs = 1000
		tune(c)
	})
	a.cfg = lab.Config
	deps := mq.Deps{Counters: a.counters}
	a.deps = deps
	a.broker = lab.Open(t, deps)
	a.relay = mq.NewRelay(a.cfg, deps, a.broker, a.store)
	a.relay.Start()
	t.Cleanup(a.relay.Close)
	consumers := mq.NewConsumers(a.cfg, deps, a.broker, a.store)
	consumers.Start()
	t.Cleanup(consumers.Close)
	a.await("ready", a.broker.Ready)
	return a
}

// make makes n orders and commits their rows.
func (a *away) make(n int) []sale.Order {
	orders := make([]sale.Order, n)
	for i := range orders {
		orders[i] = mqtest.NewOrder(a.rng, uint64(len(a.all)+i))
	}
	a.store.Put(orders)
	a.all = append(a.all, orders...)
	return orders
}

func (a *away) offer(n int) { a.relay.Offer(slices.Clone(a.make(n))) }

func (a *away) await(what string, holds func() bool) {
	a.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.Fatalf("not in time: %s (%d offered, %d written, %d NEW, %+v)", what,
				len(a.all), a.store.Written(), a.store.In(mqtest.New), a.counters.Snapshot())
		}
	}
}

func (a *away) awaitAll() {
	a.Helper()
	a.await("all written and marked", func() bool {
		return a.store.Written() == len(a.all) && a.store.In(mqtest.New) == 0
	})
	if err := a.store.Check(a.all); err != nil {
		a.Fatal(err)
	}
	a.await("outcomes add up to what was published", func() bool { // a repetition may still be in flight
		s := a.counters.Snapshot()
		return s.Published == s.Confirmed+s.Returned+s.Rejected+s.Unknown
	})
}

// Connections are cut again and again while confirms are on their way.
func TestNetworkCutMidConfirm(t *testing.T) {
	a := goAway(t)
	for i := range 20 {
		for range 10 {
			a.offer(1 + a.rng.IntN(100))
		}
		if i%2 == 0 {
			published := a.counters.Snapshot().Published
			a.await("in flight, or away", func() bool {
				return a.counters.Snapshot().Published > published || !a.broker.Ready()
			})
		}
		a.proxy.Cut()
	}
	a.awaitAll()
	if s := a.counters.Snapshot(); s.Reconnects == 0 {
		t.Fatalf("%+v", s)
	}
}

// The network falls silent without closing anything. Nobody may hang: not a publish, not Offer, not the consumers.
func TestNetworkHalfOpen(t *testing.T) {
	a := goAway(t)
	a.offer(500)
	a.awaitAll()
	a.proxy.Freeze()

	// More than the sockets hold, so that a write meets a full one.
	outcomes := make(chan mq.Outcome, 300)
	begin := time.Now()
	big := make([]byte, 100<<10)
	for range cap(outcomes) {
		a.broker.Publish(context.Background(), mq.Message{
			Exchange: mq.NamesFor(a.cfg.Prefix).Events, Key: "test", ID: "big", Body: big,
		}, func(o mq.Outcome) { outcomes <- o })
	}
	for range cap(outcomes) {
		if o := <-outcomes; o != mq.Unknown && o != mq.NotSent {
			t.Fatalf("outcome %v through a dead network", o)
		}
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Fatalf("outcomes came after %v; a confirm is waited for 1 s, a write 0.5 s", took)
	}
	a.offer(1000)
	a.await("not ready", func() bool { return !a.broker.Ready() })
	a.proxy.Thaw()
	a.awaitAll()
}

// A broker whose server is away for good can be closed, and so can relay and consumers.
func TestNetworkHalfOpenClose(t *testing.T) {
	a := goAway(t)
	a.offer(200)
	a.awaitAll()
	a.proxy.Freeze()
	defer a.proxy.Thaw()
	a.offer(300)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.relay.Close()
		_ = a.broker.Close()
	}()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		t.Fatal("Close hangs")
	}
	if n := a.store.In(mqtest.New); n != 300 {
		t.Fatalf("%d rows NEW, 300 could not be published", n)
	}
}

// Nothing listens at the address: everything waits in the outbox, and nothing piles up in memory.
func TestNetworkServerAbsentAtFirst(t *testing.T) {
	cfg := mqtest.Config()
	cfg.URL = "amqp://guest:guest@127.0.0.1:1/"
	counters := new(mq.Counters)
	broker, err := mq.Open(cfg, mq.Deps{Counters: counters})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	outcome := make(chan mq.Outcome, 1)
	broker.Publish(context.Background(), mq.Message{}, func(o mq.Outcome) { outcome <- o })
	if o := <-outcome; o != mq.NotSent {
		t.Fatal(o)
	}
	if _, err := broker.Subscribe(context.Background(), "any", 1); err == nil {
		t.Fatal("subscribed to nothing")
	}
	if broker.Ready() {
		t.Fatal("ready without a server")
	}
}

// Connections are cut again and again while poison events pass their tiers: none is lost, each is one letter, and every
// good order is written.
func TestNetworkCutMidRetry(t *testing.T) {
	a := goAway(t)
	office := mqtest.NewOffice()
	dead := mq.NewDeadConsumer(a.cfg, a.deps, a.broker, office)
	dead.Start()
	t.Cleanup(dead.Close)
	var bad []sale.Order
	for range 20 {
		orders := a.make(20)
		one := orders[a.rng.IntN(20)]
		a.store.Refuse(mqtest.ForEver, one)
		bad = append(bad, one)
		a.relay.Offer(slices.Clone(orders))
		retried := a.counters.Snapshot().Retried
		a.await("an event in a tier, or away", func() bool {
			return a.counters.Snapshot().Retried > retried || !a.broker.Ready()
		})
		a.proxy.Cut()
	}
	a.await("good orders written", func() bool { return a.store.Written() == len(a.all)-len(bad) })
	a.await("letters", func() bool { return len(office.Letters()) == len(bad) })
	letters := office.Letters()
	for _, o := range bad {
		if l, ok := letters[o.ID.String()]; !ok || l.Order == nil || *l.Order != o.ID {
			t.Errorf("letter of %s: %+v", o.ID, l)
		}
	}
	if changed := office.Changed(); len(changed) > 0 {
		t.Error(changed)
	}
}

// Orders accepted while the connection is cut are written within seconds, though their rows are far from old enough for
// the sweeper of all rows.
func TestNetworkShortLoss(t *testing.T) {
	a := goAwayWith(t, func(c *mq.Config) { c.OutboxSweepAfterMs = 3_600_000 })
	a.offer(100)
	a.awaitAll()
	a.proxy.Freeze()
	a.proxy.Cut()
	a.await("away", func() bool { return !a.broker.Ready() })
	for range 10 {
		a.offer(70)
	}
	a.await("dropped", func() bool { return a.counters.Snapshot().NotSent > 0 })
	a.proxy.Thaw()
	begin := time.Now()
	a.awaitAll()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("written %v after the network was back", took)
	}
}
