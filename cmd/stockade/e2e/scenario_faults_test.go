//go:build services

package e2e_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/cmd/stockade/proctest"
)

// Nodes die in the middle of a sale, at random moments, again and again. Every 202 becomes one order, nothing else does,
// and what was undecided is settled by the node that is left.
func TestScenario13CrashBetweenDeductAndPublish(t *testing.T) {
	t.Parallel() // mostly waits for sweepers
	const crashes, shoppers = 5, 24
	seed := newSeed(t)
	rng := newRand(seed, -1)
	p := startPair(t)
	sku := p.create(1_000_000, 1, "--slots", "8", "--open")

	var over atomic.Bool
	var served atomic.Int64
	var all sync.WaitGroup
	for s := range shoppers {
		rng := newRand(seed, s)
		all.Go(func() {
			for n := 0; !over.Load(); n++ {
				r := request{sku, fmt.Sprintf("b-%d-%d", s, n), "k", 1}
				a := p.buy(r, 2*manyTries, func() int { return rng.IntN(2) })
				if a.Code != accepted {
					t.Errorf("%+v never got a verdict: %v", r, a)
				}
				served.Add(1)
			}
		})
	}
	for crash := range crashes {
		goal := served.Load() + 50 + rng.Int64N(150)
		eventually(t, proctest.StartBound, "the sale goes on", func() bool { return served.Load() >= goal })
		victim := crash % 2
		p.node(victim).Kill()
		if crash < crashes-1 {
			p.replace(victim, startNode(t, fmt.Sprintf("%c%d", 'a'+victim, crash)))
		}
	}
	dead := time.Now()
	over.Store(true)
	all.Wait()
	p.settle(sku)
	took := time.Since(dead)
	t.Logf("%d orders, settled %v after the last crash", served.Load(), took.Round(time.Millisecond))
	if took > settleBound {
		t.Errorf("settled %v after the last crash, want at most %v", took, settleBound)
	}
	if sold := p.audit(sku); sold != served.Load() || sold != int64(len(p.told.winners(sku))) {
		t.Errorf("%d units sold to %d buyers, %d were told so", sold, served.Load(), len(p.told.winners(sku)))
	}
	p.everyOrderIsCreated(sku)
}

// A node dies right between two steps: after Redis gave the unit and before MySQL heard of it, and after MySQL promised
// it and before RabbitMQ heard of it. The other node settles both.
func TestScenario13KilledBetweenTwoSteps(t *testing.T) {
	t.Parallel() // mostly waits for sweepers
	const total = 20
	front := proctest.NewProxy(t, shop.redis)
	broker, brokerURL := brokerProxy(t)
	settings := []string{"shard.addresses=" + front.Address(), brokerURL}
	p := startUnlike(t, settings, nil)
	sku := p.create(total, 2, "--slots", "1", "--reserve-pct", "0", "--open")

	broker.Cut()
	promised := request{sku, "promised", "k", 1}
	won := p.buy(promised, manyTries, always(0))
	if won.Code != accepted {
		t.Fatalf("without RabbitMQ: %v", won)
	}
	asked := make(chan answer, 1)
	deducted := func(buyer string) request {
		r := request{sku, buyer, "k", 1}
		eventually(t, settleBound, "nothing is undecided, so that the next script is this buyer's", func() bool {
			_, pending := sum(p.shares(sku))
			return pending == 0
		})
		front.Arm(proctest.LateReply)
		go func() { asked <- p.ask(0, r) }()
		eventually(t, flagBound, "Redis has answered", front.Hit)
		p.node(0).Kill()
		if a := <-asked; a.verdict() {
			t.Errorf("a node that was killed answered %v", a)
		}
		sold := int64(len(p.told.winners(sku)))
		if left, pending := sum(p.shares(sku)); left != total-sold-1 || pending != 1 {
			t.Errorf("%d left and %d pending after %d orders of %d and a take of a dead node", left, pending, sold, total)
		}
		return r
	}
	patient := deducted("patient")
	if o, ok := p.order(p.node(1), promised.buyer, won.OrderID); !ok {
		t.Errorf("the order of a dead node: %+v", o)
	}
	if a := p.buy(patient, manyTries, always(1)); a.Code != accepted {
		t.Errorf("asked again at the other node: %v", a)
	}
	p.replace(0, startNode(t, "a-again", settings...))
	deducted("gone-away")
	killed := time.Now()
	if sold := p.audit(sku); sold != 2 {
		t.Errorf("%d units sold, want 2", sold)
	}
	took := time.Since(killed)
	t.Logf("settled %v after the crash", took.Round(time.Millisecond))
	if took > settleBound {
		t.Errorf("settled %v after the crash, want at most %v", took, settleBound)
	}
	p.everyOrderIsCreated(sku)
}

// A reply of Redis comes too late, or never, or the request itself does: the unit is taken once, the buyer is told that
// nobody knows yet, and asking again gets the order.
func TestScenario19LateReplyDeductsOnce(t *testing.T) {
	t.Parallel() // mostly waits for sweepers
	front := proctest.NewProxy(t, shop.redis)
	// The other node sweeps journals: a sweep of this one might meet the fault that is meant for a purchase.
	p := startUnlike(t, []string{"shard.addresses=" + front.Address(), "service.journalEveryMs=60000"}, nil)
	sold := map[string]int64{}
	for _, fault := range []struct {
		name  string
		spoil proctest.Spoil
	}{{"late reply", proctest.LateReply}, {"lost reply", proctest.LostReply}, {"request held back", proctest.HeldBack}} {
		sku := p.create(20, 2, "--slots", "1", "--reserve-pct", "0", "--open")
		if a := p.buy(request{sku, "warm-up", "k", 1}, manyTries, always(0)); a.Code != accepted {
			t.Fatalf("before the fault: %v", a)
		}
		p.settle(sku)
		want := int64(19)
		for again := range p.nodes { // the node that is asked again
			r := request{sku, fmt.Sprintf("b-%d", again), "k", 1}
			a := p.spoilt(front, fault.spoil, r)
			if a.Code != busy || a.Outcome != "unknown" || a.OrderID == "" {
				t.Errorf("%s: %v, want BUSY with an unknown outcome", fault.name, a)
			}
			if fault.spoil != proctest.HeldBack {
				if left, pending := sum(p.shares(sku)); left != want-1 || pending != 1 {
					t.Errorf("%s: %d left and %d pending, want %d and 1", fault.name, left, pending, want-1)
				}
			}
			won := p.buy(r, manyTries, always(again))
			front.Release()
			if won.Code != accepted || won.OrderID != a.OrderID {
				t.Errorf("%s, asked again at node %d: %v, want ACCEPTED with %s", fault.name, again, won, a.OrderID)
			}
			want--
			p.settle(sku)
			if left, _ := sum(p.shares(sku)); left != want {
				t.Errorf("%s: %d units left, want %d", fault.name, left, want)
			}
		}
		// Nobody asks again: the unit comes back.
		if a := p.spoilt(front, fault.spoil, request{sku, "gone-away", "k", 1}); a.Outcome != "unknown" {
			t.Errorf("%s: %v", fault.name, a)
		}
		front.Release()
		eventually(t, settleBound, "the unit is taken", func() bool { _, pending := sum(p.shares(sku)); return pending == 1 })
		sold[sku] = 20 - want
	}
	for sku, want := range sold {
		if got := p.audit(sku); got != want {
			t.Errorf("%s: %d units sold, want %d", sku, got, want)
		}
	}
}

// spoilt asks node 0 while the next script meets a fault.
func (p *pair) spoilt(front *proctest.Proxy, s proctest.Spoil, r request) answer {
	p.t.Helper()
	front.Arm(s)
	a := p.ask(0, r)
	if !front.Hit() {
		p.t.Errorf("the fault did not meet %+v", r)
	}
	return a
}

// Many buyers while replies keep getting late: every unit that is gone has an order.
func TestScenario19LateRepliesInACrowd(t *testing.T) {
	const buyers = 200
	front := proctest.NewProxy(t, shop.redis)
	p := startUnlike(t, []string{"shard.addresses=" + front.Address()}, nil)
	sku := p.create(1000, 2, "--slots", "4", "--open")
	faults := []proctest.Spoil{proctest.LateReply, proctest.LostReply}
	each(buyers, 16, func(i int) {
		if i%20 == 0 {
			front.Arm(faults[i/20%len(faults)])
		}
		r := request{sku, fmt.Sprintf("b-%d", i), "k", 1}
		if a := p.buy(r, manyTries, always(i%2)); a.Code != accepted {
			t.Errorf("%+v: %v", r, a)
		}
	})
	if sold := p.audit(sku); sold != buyers {
		t.Errorf("%d units sold to %d buyers of one", sold, buyers)
	}
	t.Logf("%d answers were BUSY", p.told.count(sku, busy))
}
