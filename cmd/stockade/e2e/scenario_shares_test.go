//go:build services

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

type share = handler.ShareJSON

// homeOf is the slot of a buyer by the definition of it, not by the code under test.
func homeOf(buyer string, slots int) int { return int(xxhash.Sum64String(buyer) % uint64(slots)) }

// A buyer whose hash is negative as a signed number has a slot like everybody else, and it is that slot that gives the
// unit, before and after a top-up laid the stock out anew.
func TestScenario06EveryHashHasItsSlot(t *testing.T) {
	const slots, perRound = 7, 30
	p := startPair(t)
	sku := p.create(700, 2, "--slots", fmt.Sprint(slots), "--open")
	total := int64(700)
	checkLayout := func() {
		t.Helper()
		l := p.listing(sku)
		want := sale.Layout(l.Ledger.Available, slots, l.ReservePct)
		for i, s := range p.shares(sku) {
			if s.Left != want[i] {
				t.Errorf("share %s holds %d units, want %d of %d", s.Share, s.Left, want[i], l.Ledger.Available)
			}
		}
	}
	checkLayout()
	n := 0
	for round := range 3 {
		before := p.shares(sku)
		want := make([]int64, slots+1)
		var buyers []string
		for len(buyers) < perRound {
			n++
			buyer := fmt.Sprintf("b-%d", n)
			if xxhash.Sum64String(buyer)>>63 == 1 {
				buyers = append(buyers, buyer)
				want[homeOf(buyer, slots)]++
			}
		}
		atOnce(perRound, func(i int) {
			if a := p.buy(request{sku, buyers[i], "k", 1}, manyTries, always(i%2)); a.Code != accepted {
				t.Errorf("buyer %s in slot %d: %v", buyers[i], homeOf(buyers[i], slots), a)
			}
		})
		p.settle(sku)
		for i, s := range p.shares(sku) {
			if got := before[i].Left - s.Left; got != want[i] {
				t.Errorf("round %d: share %s gave %d units, want %d", round, s.Share, got, want[i])
			}
		}
		add := int64(31 + round)
		p.adjust(sku, add)
		total += add
		checkLayout()
		if left, _ := sum(p.shares(sku)); left != total-int64((round+1)*perRound) {
			t.Errorf("round %d: %d units left of %d after %d sales", round, left, total, (round+1)*perRound)
		}
		p.replays(sku)
	}
	if sold := p.audit(sku); sold != 3*perRound {
		t.Errorf("%d units sold, want %d", sold, 3*perRound)
	}
}

// A node that just heard that all is gone knows it at the next request, asks Redis no more, and forgets it when units
// come on top, wherever that was ordered.
func TestScenario18SoldOutIsKnownAndForgotten(t *testing.T) {
	const rounds = 5
	front := proctest.NewProxy(t, shop.redis)
	// The longest times that flags and looks may have: without hints the nodes would be slow to hear.
	slow := []string{"cache.flagLifetimeMs=1900", "service.peekEveryMs=1400"}
	p := startUnlike(t, append(slices.Clone(slow), "shard.addresses="+front.Address()), slow)
	sku := p.create(1, 1, "--open")
	var hinted []time.Duration
	for round := range rounds {
		buyer := func(who string, i int) request {
			return request{sku, fmt.Sprintf("%s-%d-%d", who, round, i), "k", 1}
		}
		// The unit may take until the flags of the round before are gone; then the verdict must be there at once.
		if round == 0 {
			if a := p.buy(buyer("first", 0), manyTries, always(0)); a.Code != accepted {
				t.Fatalf("the first buyer: %v", a)
			}
		}
		for i := range p.nodes {
			if a := p.buy(buyer("next", i), manyTries, always(i)); a.Code != soldOut {
				t.Errorf("round %d, node %d, right after the last unit: %v", round, i, a)
			}
		}
		p.fromMemory(front, sku, round)
		p.adjust(sku, int64(len(p.nodes)))                   // one for each node's fresh buyer, both in reach of everybody
		hinted = append(hinted, p.sellsAgain(sku, round)[1]) // the node that only had the hint
	}
	slices.Sort(hinted)
	t.Logf("sold again after %v", hinted)
	if median := hinted[len(hinted)/2]; median > 300*time.Millisecond {
		t.Errorf("half of the times the other node took %v or longer to sell after a top-up", median)
	}
	p.audit(sku)

	front.Deafen()
	for i := range p.nodes {
		eventually(t, flagBound, "sold out again", func() bool {
			return p.ask(i, request{sku, fmt.Sprintf("deaf-%d-%d", i, time.Now().UnixNano()), "k", 1}).Code == soldOut
		})
	}
	p.node(1).CLI("sku", "adjust", sku, "+2")
	t.Logf("sold again without hints after %v", p.sellsAgain(sku, rounds))
	p.audit(sku)
}

// fromMemory checks that a node answers nearly all refusals without asking Redis.
func (p *pair) fromMemory(front *proctest.Proxy, sku string, round int) {
	p.t.Helper()
	const refusals = 100
	for try := range 10 {
		before := front.Scripts.Load()
		for i := range refusals {
			if a := p.ask(0, request{sku, fmt.Sprintf("refused-%d-%d-%d", round, try, i), "k", 1}); a.Code != soldOut {
				p.t.Errorf("round %d: %v, want SOLD_OUT", round, a)
			}
		}
		if asked := front.Scripts.Load() - before; asked < refusals/5 {
			return
		}
	}
	p.t.Errorf("round %d: the node asks Redis although it knows that all is gone", round)
}

// sellsAgain has a fresh buyer at each node ask until there is a unit, and returns how long that took.
func (p *pair) sellsAgain(sku string, round int) []time.Duration {
	p.t.Helper()
	took := make([]time.Duration, len(p.nodes))
	atOnce(len(p.nodes), func(i int) {
		begun := time.Now()
		for n := 0; ; n++ {
			a := p.ask(i, request{sku, fmt.Sprintf("again-%d-%d-%d", round, i, n), "k", 1})
			took[i] = time.Since(begun)
			if a.Code == accepted {
				return
			}
			if took[i] > flagBound {
				p.t.Errorf("round %d, node %d: %v for %v after the top-up", round, i, a, took[i])
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return took
}
