// Package mqtest is the one suite that every broker of package mq passes, with the small real things that it needs: a
// store in memory and a broker with troubles on demand.
package mqtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// patience is how long a condition may take to come true on a busy machine.
const patience = 30 * time.Second

// Lab is an empty broker for one test, with its own names.
type Lab struct {
	Config mq.Config
	// Windows are payment windows of the test besides sale.DefaultWindow, for the lab to remove their delay queues.
	Windows []time.Duration
	// Open returns a client; the lab closes it with the test.
	Open func(t testing.TB, deps mq.Deps) mq.Broker
	// DeleteQueue drops a queue with what is in it.
	DeleteQueue func(queue string)
	// BindEvents makes a queue that takes every notice.
	BindEvents func(queue string)
}

// NewLab makes a lab whose Config was given to tune first.
type NewLab func(t testing.TB, tune func(*mq.Config)) *Lab

// Config is a configuration of the suite: short ages, and otherwise the defaults.
func Config() mq.Config {
	cfg := mq.DefaultConfig()
	cfg.OutboxSweepAfterMs = 200
	cfg.OutboxRecheckAfterMs = 3_600_000
	cfg.NoticeSweepAfterMs = 50
	cfg.Retry1Ms, cfg.Retry2Ms, cfg.Retry3Ms = 20, 40, 60
	cfg.PauseMinMs, cfg.PauseMaxMs = 5, 100
	cfg.ReconnectMinMs, cfg.ReconnectMaxMs = 10, 500
	return cfg
}

// NewMemoryLab makes a lab around the broker inside the process.
func NewMemoryLab(t testing.TB, tune func(*mq.Config)) *Lab {
	cfg := Config()
	cfg.Driver = mq.DriverMemory
	tune(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	var broker *mq.Memory
	return &Lab{
		Config: cfg,
		Open: func(t testing.TB, deps mq.Deps) mq.Broker {
			broker = mq.NewMemory(cfg, deps)
			t.Cleanup(func() { _ = broker.Close() })
			return broker
		},
		DeleteQueue: func(queue string) { broker.DeleteQueue(queue) },
		BindEvents:  func(queue string) { broker.Bind(queue, mq.NamesFor(cfg.Prefix).Events, "#") },
	}
}

// bench is a lab with everything around it.
type bench struct {
	*testing.T
	lab      *Lab
	names    mq.Names
	deps     mq.Deps
	counters *mq.Counters
	broker   *Faults
	store    *Store
	office   *Office
	switches *Switches
	rng      *rand.Rand
	made     uint64
}

func setUp(t *testing.T, newLab NewLab, tune func(*mq.Config)) *bench {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	lab := newLab(t, tune)
	b := &bench{
		T:        t,
		lab:      lab,
		names:    mq.NamesFor(lab.Config.Prefix),
		counters: new(mq.Counters),
		store:    NewStore(),
		office:   NewOffice(),
		switches: NewSwitches(),
		rng:      rand.New(rand.NewPCG(seed, 1)),
	}
	b.store.Dead(b.office.HasLetter)
	b.deps = mq.Deps{Counters: b.counters, Paused: b.switches.Paused, Faults: b.switches}
	b.broker = WithFaults(lab.Open(t, b.deps))
	return b
}

func untuned(*mq.Config) {}

// relay starts a relay that the test's end closes.
func (b *bench) relay() *mq.Relay {
	r := mq.NewRelay(b.lab.Config, b.deps, b.broker, b.store)
	r.Start()
	b.Cleanup(r.Close)
	return r
}

// consumers starts consumers that the test's end closes.
func (b *bench) consumers() *mq.Consumers {
	c := mq.NewConsumers(b.lab.Config, b.deps, b.broker, b.store)
	c.Start()
	b.Cleanup(c.Close)
	return c
}

// dead starts a consumer of dead letters that the test's end closes.
func (b *bench) dead() *mq.DeadConsumer {
	d := mq.NewDeadConsumer(b.lab.Config, b.deps, b.broker, b.office)
	d.Start()
	b.Cleanup(d.Close)
	return d
}

// expiry starts a consumer of timeout messages that the test's end closes.
func (b *bench) expiry() *mq.ExpiryConsumer {
	e := mq.NewExpiryConsumer(b.lab.Config, b.deps, b.broker, b.office)
	e.Start()
	b.Cleanup(e.Close)
	return e
}

// orders makes n orders and commits their rows.
func (b *bench) orders(n int) []sale.Order {
	out := make([]sale.Order, n)
	for i := range out {
		b.made++
		out[i] = NewOrder(b.rng, b.made)
	}
	b.store.Put(out)
	return out
}

// NewOrder makes an order as the promise does; no two numbers give the same id.
func NewOrder(rng *rand.Rand, number uint64) sale.Order {
	var id sale.OrderID
	binary.BigEndian.PutUint64(id[:8], rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], number)
	at := time.UnixMilli(1_767_000_000_000 + rng.Int64N(1_000_000)).UTC()
	return sale.Order{
		ID:         id,
		SKU:        "demo",
		Buyer:      fmt.Sprintf("buyer <%d> ü", rng.IntN(1000)),
		Quantity:   1 + rng.Int64N(3),
		State:      sale.OrderQueued,
		AcceptedAt: at,
		ExpiresAt:  at.Add(sale.DefaultWindow),
	}
}

// await polls until the condition holds.
func (b *bench) await(what string, holds func() bool) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			b.Fatalf("not within %v: %s (written %d, NEW %d, SENT %d, letters %d, expired %d, %+v)", patience, what,
				b.store.Written(), b.store.In(New), b.store.In(Sent), len(b.office.Letters()), b.office.Expired(),
				b.counters.Snapshot())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// awaitAll waits until every order is written and its row SENT or DONE, then checks the store.
func (b *bench) awaitAll(orders []sale.Order) {
	b.Helper()
	b.await("every order written and marked", func() bool {
		return b.store.Written() >= len(orders) && b.store.In(New) == 0
	})
	if err := b.store.Check(orders); err != nil {
		b.Fatal(err)
	}
}

// receive takes n deliveries from a queue and acks them.
func (b *bench) receive(queue string, n int) []mq.Delivery {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var sub mq.Subscription
	b.await("subscribe to "+queue, func() (ok bool) {
		var err error
		sub, err = b.broker.Broker.Subscribe(ctx, queue, 10)
		return err == nil
	})
	defer sub.Close()
	var got []mq.Delivery
	for len(got) < n {
		select {
		case d, open := <-sub.Deliveries():
			if !open {
				b.Fatalf("subscription to %s ended after %d of %d deliveries", queue, len(got), n)
			}
			if err := sub.Ack(d); err != nil {
				b.Fatal(err)
			}
			got = append(got, d)
		case <-ctx.Done():
			b.Fatalf("%d of %d deliveries from %s within %v", len(got), n, queue, patience)
		}
	}
	return got
}
