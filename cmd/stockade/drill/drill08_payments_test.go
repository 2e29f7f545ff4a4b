//go:build services

package drill_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// The race of payments against expiry.
const (
	racers      = 1000                  // in the short form, a quarter of them
	raceWindow  = 2 * time.Second       // to pay
	raceSpread  = 50 * time.Millisecond // around the end of the window, either way
	raceClients = 48                    // buy at the same time
	lateOneIn   = 10                    // payments that come much too late
	muchTooLate = time.Second
	raceBound   = 60 * time.Second // of one racer, in all
)

// racer is an order whose payment comes when its window ends, twice.
type racer struct {
	request
	order, payment string
	said           [2]answer
}

// buy gets one unit and learns until when it is to be paid for.
func (c *crowd) buyToRace(rng *rand.Rand, r *racer) (expires time.Time, ok bool) {
	deadline := time.Now().Add(raceBound)
	for ; time.Now().Before(deadline); pass(retryPause) {
		n := c.w.any(rng)
		a := c.ask(buyers, n, r.request)
		if !a.won() {
			continue
		}
		r.order = a.OrderID
		if o, err := c.order(n, r.request, r.order); err == nil {
			return o.ExpiresAt, true
		}
	}
	return expires, false
}

// race buys for one racer after the other, and has each payment sent from both nodes at its moment.
func (c *crowd) race(s *sku, racers int) []*racer {
	c.w.t.Helper()
	seed := rand.Uint64()
	c.w.t.Logf("race: seed %d", seed)
	all := make([]*racer, racers)
	var next atomic.Int64 // racer
	var buying, paid sync.WaitGroup
	for i := range raceClients {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		buying.Go(func() {
			for k := int(next.Add(1) - 1); k < racers; k = int(next.Add(1) - 1) {
				r := &racer{request: request{sku: s.name, buyer: fmt.Sprintf("racer-%d", k), key: "k", quantity: 1}}
				r.payment = "payment-" + r.buyer
				all[k] = r
				expires, ok := c.buyToRace(rng, r)
				if !ok {
					c.w.t.Errorf("%s got no order", r.buyer)
					continue
				}
				at := expires.Add(time.Duration(rng.Int64N(int64(2*raceSpread))) - raceSpread)
				if rng.IntN(lateOneIn) == 0 {
					at = expires.Add(muchTooLate)
				}
				first := rng.IntN(2)
				for twice := range 2 {
					n := c.w.node((first + twice) % 2)
					paid.Go(func() { c.payAt(at, n, r, twice) })
				}
			}
		})
	}
	buying.Wait()
	paid.Wait()
	return all
}

func (c *crowd) payAt(at time.Time, n *proctest.Node, r *racer, which int) {
	pass(time.Until(at))
	r.said[which] = c.payUntilSettled(buyers, n, r.request, r.order, r.payment, at.Add(raceBound))
}

// A thousand payments come when the time to pay ends, each twice. Every order is paid or closed, and none both.
func TestDrill08PaymentsRaceExpiry(t *testing.T) {
	count := racers / 4
	if long() {
		count = racers
	}
	w := newWorld(t)
	w.takePayments()
	w.set("service", "expiryEveryMs: 50") // orders are closed as soon as they may be
	w.pace = 4 * usualPace
	w.step("two nodes, an SKU with %v to pay, another one, %d buyers", raceWindow, buyers)
	w.start(2)
	heard := w.listen()
	c := w.open(w.create(1_000_000, 2, 8))
	c.awaitWins(20, 30*time.Second)
	s := w.createFor(raceWindow, int64(count+littleUnits), 1, 8)

	w.step("%d orders, each paid for twice within %v of the end of its time", count, raceSpread)
	begun := time.Now()
	all := c.race(s, count)
	t.Logf("the race took %v", time.Since(begun).Round(time.Millisecond))

	w.step("the sale ends; audit")
	c.audit(raceWindow + settleBound)
	w.judge(s, all, heard)
}

// judge holds what payers were told against what is written.
func (w *world) judge(s *sku, all []*racer, heard *notices) {
	w.t.Helper()
	tr, err := w.truth(s)
	w.must(err)
	var paidOrders, closedOrders, refunds []string
	for _, r := range all {
		row := tr.rows[r.order]
		want := string(sale.OrderPaid)
		switch row.state {
		case sale.OrderPaid:
			paidOrders = append(paidOrders, r.order)
			if row.closed != 0 {
				w.t.Errorf("%s: paid, and its outbox row is closed", r.buyer)
			}
		case sale.OrderClosed:
			want = refundNeeded
			closedOrders, refunds = append(closedOrders, r.order), append(refunds, r.payment)
			if row.closed == 0 || row.reason != string(sale.ReasonPaymentTimeout) {
				w.t.Errorf("%s: closed, and its outbox row says %+v", r.buyer, row)
			}
		default:
			w.t.Errorf("%s: neither paid nor closed: %+v", r.buyer, row)
			continue
		}
		for _, said := range r.said {
			if said.Code != want {
				w.t.Errorf("%s: the order is %s and a payer was told %v", r.buyer, row.state, said)
			}
		}
	}
	w.t.Logf("%d orders paid, %d closed; %d replays", len(paidOrders), len(closedOrders), replays(all))
	if len(paidOrders) == 0 || len(closedOrders) == 0 {
		w.t.Error("this was no race")
	}
	w.count("units sold", int64(len(paidOrders)), "SELECT sold FROM ledger WHERE sku = ?", s.name)
	w.count("units promised", int64(len(paidOrders)), "SELECT promised FROM ledger WHERE sku = ?", s.name)
	w.count("restocks", int64(len(closedOrders)), "SELECT COUNT(*) FROM restock WHERE sku = ?", s.name)
	w.count("restocks credited", int64(len(closedOrders)),
		"SELECT COUNT(*) FROM restock WHERE sku = ? AND credited_at IS NOT NULL", s.name)
	w.count("payments taken", int64(len(paidOrders)), "SELECT COUNT(*) FROM payment WHERE outcome = 1")
	w.count("payments to refund", int64(len(refunds)), "SELECT COUNT(*) FROM payment WHERE outcome = 2")
	w.expectOnce(heard, sale.TopicPaid, paidOrders)
	w.expectOnce(heard, sale.TopicClosed, closedOrders)
	w.expectOnce(heard, sale.TopicRefundRequired, refunds)
}

// count compares a figure of the database.
func (w *world) count(what string, want int64, query string, args ...any) {
	w.t.Helper()
	var got int64
	w.must(w.db.QueryRow(query, args...).Scan(&got))
	if got != want {
		w.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// replays counts the answers that said what had been decided before.
func replays(all []*racer) (n int) {
	for _, r := range all {
		for _, said := range r.said {
			if said.replayed {
				n++
			}
		}
	}
	return n
}
