//go:build services

package drill_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
)

// Bounds of a poison event.
const (
	goodBound  = 2 * time.Second // the others of its envelope exist
	handling   = 5 * time.Second // beside the retry tiers, until its order is closed
	afterClose = 3 * time.Second // until its unit is sold to somebody else
)

// sighting is the first envelope that a buyer's order was in.
type sighting struct {
	at     time.Time
	orders []sale.Order
}

// sight waits for the envelope of a buyer.
func (w *world) sight(buyer string) <-chan sighting {
	w.t.Helper()
	names := mq.NamesFor(w.name)
	seen := make(chan sighting, 1)
	w.tap(names.Orders, []string{names.Create}, func(_ *amqp.Channel, d amqp.Delivery) {
		orders, err := mq.DecodeEnvelope(d.ContentType, d.Body)
		if err != nil {
			return
		}
		for _, o := range orders {
			if o.Buyer != buyer {
				continue
			}
			select {
			case seen <- sighting{time.Now(), orders}:
			default: // it comes back from its tiers
			}
		}
	})
	return seen
}

// sellAll sells every unit of a SKU, one to each of as many buyers. The first one is waited for.
func (c *crowd) sellAll(s *sku, first string) {
	c.w.t.Helper()
	buy := func(rng *rand.Rand, buyer string) {
		r := request{sku: s.name, buyer: buyer, key: "k", quantity: 1}
		for a := c.ask(buyers, c.w.any(rng), r); !a.won(); a = c.ask(buyers, c.w.any(rng), r) {
			if c.over.Load() {
				return
			}
			pass(retryPause)
		}
	}
	buy(rand.New(rand.NewPCG(1, 1)), first)
	var others sync.WaitGroup
	var n atomic.Int64
	n.Store(1)
	for i := range 16 {
		rng := rand.New(rand.NewPCG(2, uint64(i)))
		others.Go(func() {
			for k := n.Add(1); k <= s.total && !c.over.Load(); k = n.Add(1) {
				buy(rng, fmt.Sprintf("other-%d", k))
			}
		})
	}
	others.Wait()
}

// written counts which of these orders have a row.
func (w *world) written(orders []sale.Order) (n int) {
	in := make([]string, len(orders))
	for i, o := range orders {
		in[i] = "UNHEX('" + hex.EncodeToString(o.ID[:]) + "')"
	}
	err := w.db.QueryRow("SELECT COUNT(*) FROM orders WHERE id IN (" + strings.Join(in, ",") + ")").Scan(&n)
	w.ok(err)
	return n
}

// One event in an envelope of 100 cannot be written: the others are, and it goes through the tiers, becomes a dead letter,
// its order is closed, and its unit is sold to somebody else.
func TestDrill06PoisonEvent(t *testing.T) {
	const poison = "poison"
	tiers := []int{200, 300, 500}
	if long() {
		tiers = []int{1000, 5000, 10_000}
	}
	w := newWorld(t, fmt.Sprintf("mq.retry1Ms: %d", tiers[0]), fmt.Sprintf("mq.retry2Ms: %d", tiers[1]),
		fmt.Sprintf("mq.retry3Ms: %d", tiers[2]))
	inTiers := time.Duration(tiers[0]+tiers[1]+tiers[2]) * time.Millisecond
	_, err := w.db.Exec("ALTER TABLE orders ADD CONSTRAINT no_poison CHECK (buyer <> '" + poison + "' OR state = 3)")
	w.must(err)
	w.step("two nodes, an SKU of 100 units, another one, %d buyers", buyers)
	w.start(2)
	for _, n := range w.launched {
		n.Expect("an event is a dead letter", "message dead-lettered")
	}
	c := w.open(w.create(1_000_000, 2, 8))
	s := w.create(100, 1, 1)
	c.awaitWins(50, 30*time.Second)

	w.step("the relay pauses, 100 units are sold, one to a buyer whose order cannot be written")
	seen := w.sight(poison)
	w.toggle(sale.ToggleRelay, "pause")
	c.sellAll(s, poison)
	c.awaitWins(200, 30*time.Second)
	w.step("the relay goes on")
	w.toggle(sale.ToggleRelay, "run")
	var envelope sighting
	select {
	case envelope = <-seen:
	case <-time.After(linkBound):
		t.Fatal("no envelope has the poison")
	}
	if n := len(envelope.orders); n != mq.MaxEnvelopeOrders {
		t.Fatalf("the poison is in an envelope of %d, want %d", n, mq.MaxEnvelopeOrders)
	}

	w.step("99 of 100 are written")
	good := make([]sale.Order, 0, mq.MaxEnvelopeOrders)
	for _, o := range envelope.orders {
		if o.Buyer != poison {
			good = append(good, o)
		}
	}
	w.holds("the others of the envelope", envelope.at, goodBound, func() bool { return w.written(good) == len(good) })
	w.step("it goes through the tiers, is a dead letter and closed")
	w.holds("the poison is compensated", envelope.at, inTiers+handling, func() bool {
		var n int
		err := w.db.QueryRowContext(context.Background(), `SELECT COUNT(*) FROM orders r JOIN dead_letter d ON d.order_id = r.id
			WHERE r.buyer = ? AND r.state = 3 AND r.reason = ? AND d.state = ?`,
			poison, string(sale.ReasonCompensated), string(sale.DeadCompensated)).Scan(&n)
		return err == nil && n == 1
	})
	if early := time.Since(envelope.at); early < inTiers {
		t.Errorf("a dead letter after %v: the tiers take %v", early, inTiers)
	}
	w.step("its unit is sold again")
	heir := request{sku: s.name, buyer: "heir", key: "k", quantity: 1}
	rng := rand.New(rand.NewPCG(3, 3))
	w.holds("the unit is sold again", time.Now(), afterClose, func() bool { return c.ask(buyers, w.any(rng), heir).won() })

	w.step("the sale ends; audit")
	c.audit(drainBound)
}

// holds waits for something, and holds how long it took since a moment against its bound.
func (w *world) holds(what string, since time.Time, bound time.Duration, ok func() bool) {
	w.t.Helper()
	poll(w.t, 50*time.Millisecond, bound+recoveryGrace, what, ok)
	took := time.Since(since)
	w.t.Logf("%s: after %v, bound %v", what, took.Round(time.Millisecond), bound)
	if took > bound {
		w.t.Errorf("%s: after %v, want at most %v", what, took, bound)
	}
}
