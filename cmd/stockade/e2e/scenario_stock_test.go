//go:build services

package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

// Buyers race for the last unit, again and again: one gets it, everybody else hears SOLD_OUT, and the counter is what
// the rows say.
func TestScenario01LastUnit(t *testing.T) {
	const rounds, racers = 4, 60
	p := startPair(t)
	for name, flags := range map[string][]string{
		"in the buyers' home": {"--slots", "1", "--reserve-pct", "0"},
		"in the reserve":      {"--slots", "8", "--reserve-pct", "5"},
	} {
		sku := p.create(1, 2, append(flags, "--open")...)
		for round := range rounds {
			if round > 0 {
				p.adjust(sku, 1)
			}
			codes := make([]string, racers)
			atOnce(racers, func(i int) {
				r := request{sku, fmt.Sprintf("racer-%d-%d", round, i), "k", 1}
				codes[i] = p.buy(r, manyTries, always(i%2)).Code
			})
			won, lost := 0, 0
			for _, code := range codes {
				switch code {
				case accepted:
					won++
				case soldOut:
					lost++
				}
			}
			if won != 1 || lost != racers-1 {
				t.Fatalf("%s, round %d: %d won, %d sold out, want 1 and %d: %v", name, round, won, lost, racers-1, codes)
			}
		}
		if sold := p.audit(sku); sold != rounds {
			t.Errorf("%s: %d units sold in %d rounds of one", name, sold, rounds)
		}
	}
}

// N requests at the same time, and the counters are exactly the rows: in the ledger and in every share.
func TestScenario01CounterEqualsRows(t *testing.T) {
	const buyers, total, slots = 300, 1000, 4
	p := startPair(t)
	sku := p.create(total, 3, "--slots", fmt.Sprint(slots), "--reserve-pct", "0", "--open")
	before := p.shares(sku)
	want := make([]int64, slots)
	atOnce(buyers, func(i int) {
		r := request{sku, fmt.Sprintf("b-%d", i), "k", int64(1 + i%3)}
		if a := p.buy(r, manyTries, always(i%2)); a.Code != accepted {
			t.Errorf("%+v: %v", r, a)
		}
	})
	units := int64(0)
	for i := range buyers {
		units += int64(1 + i%3)
		want[homeOf(fmt.Sprintf("b-%d", i), slots)] += int64(1 + i%3)
	}
	if sold := p.audit(sku); sold != units {
		t.Errorf("%d units sold, want %d", sold, units)
	}
	after := p.shares(sku)
	for i, w := range want {
		if got := before[i].Left - after[i].Left; got != w {
			t.Errorf("slot %d gave %d units, its buyers hold %d", i, got, w)
		}
	}
}

// Stock that was asked for a hundred times too often is at zero, not below: what comes on top can be sold at once.
func TestScenario02FailedTriesLeaveNoDebt(t *testing.T) {
	const stock, failures = 10, 100
	p := startPair(t)
	sku := p.create(stock, 2, "--slots", "3")
	atOnce(failures, func(i int) { // before the load
		if a := p.ask(i%2, request{sku, fmt.Sprintf("early-%d", i), "k", 1}); a.Code != notOnSale {
			t.Errorf("a DRAFT answered %v", a)
		}
	})
	p.node(0).CLI("sku", "load", sku)
	p.node(0).CLI("sku", "open", sku)
	p.sellOut(sku, "first", stock)
	for _, more := range []int64{7, 1} {
		atOnce(failures, func(i int) {
			r := request{sku, fmt.Sprintf("failure-%d-%d", more, i), "k", int64(1 + i%2)}
			if a := p.buy(r, manyTries, always(i%2)); a.Code != soldOut {
				t.Errorf("%+v of none: %v", r, a)
			}
		})
		p.settle(sku)
		for _, s := range p.shares(sku) {
			if s.Left != 0 || s.Pending != 0 {
				t.Errorf("after %d failures share %s has %d left and %d pending, want none", failures, s.Share, s.Left, s.Pending)
			}
		}
		p.adjust(sku, more)
		begun := time.Now()
		p.sellOut(sku, fmt.Sprintf("top-up-%d", more), more)
		t.Logf("%d more units sold within %v", more, time.Since(begun).Round(time.Millisecond))
	}
	if sold := p.audit(sku); sold != stock+7+1 {
		t.Errorf("%d units sold, want %d", sold, stock+7+1)
	}
}

// sellOut has buyers come who can reach what is left, until nothing is: exactly units of them succeed, and within the
// lifetime of a flag.
func (p *pair) sellOut(sku, crowd string, units int64) {
	p.t.Helper()
	deadline := time.Now().Add(flagBound)
	for sold, n := int64(0), 0; ; n++ {
		shares := p.shares(sku)
		if left, _ := sum(shares); left == 0 {
			if sold != units {
				p.t.Errorf("%s: %d units sold, want %d", sku, sold, units)
			}
			return
		}
		buyer := fmt.Sprintf("%s-%d", crowd, n)
		if !served(shares, buyer, 1) {
			continue
		}
		a := p.buy(request{sku, buyer, "k", 1}, manyTries, always(n%2))
		switch {
		case a.Code == accepted:
			sold++
		case time.Now().After(deadline):
			p.t.Fatalf("%s: %s within reach of the stock: %v", sku, buyer, a)
		}
	}
}

// N units and many more buyers: N are sold, never N+1. A quantity that is not there as a whole is not sold in part.
func TestScenario05NeverOneMore(t *testing.T) {
	p := startPair(t)
	for _, slots := range []int{1, 3} {
		const total, buyers = 17, 120
		sku := p.create(total, 2, "--slots", fmt.Sprint(slots), "--open")
		atOnce(buyers, func(i int) {
			p.buy(request{sku, fmt.Sprintf("b-%d", i), "k", 1}, manyTries, always(i%2))
		})
		if sold := p.audit(sku); sold != total {
			t.Errorf("%d slots: %d units sold to %d buyers, want %d", slots, sold, buyers, total)
		}
	}
	for stock := int64(1); stock <= 2; stock++ {
		sku := p.create(stock, 5, "--slots", "1", "--reserve-pct", "0", "--open")
		for quantity := stock + 1; quantity <= 5; quantity++ {
			a := p.buy(request{sku, fmt.Sprintf("wants-%d", quantity), "k", quantity}, manyTries, always(int(quantity)%2))
			if a.Code != soldOut || a.Reason != "NOT_ENOUGH" {
				t.Errorf("%d units of %d: %v, want SOLD_OUT with NOT_ENOUGH", quantity, stock, a)
			}
		}
		if left, pending := sum(p.shares(sku)); left != stock || pending != 0 {
			t.Errorf("refusals left %d units and %d pending of %d", left, pending, stock)
		}
		if a := p.buy(request{sku, "fits", "k", stock}, manyTries, always(0)); a.Code != accepted {
			t.Errorf("%d units of %d: %v", stock, stock, a)
		}
		if sold := p.audit(sku); sold != stock {
			t.Errorf("%d units sold of %d", sold, stock)
		}
	}
}

// What is left lies scattered: whoever asks for no more than that is served or sent to ask again, never told SOLD_OUT,
// and nobody gets a quantity put together from two shares.
func TestScenario05ScatteredRest(t *testing.T) {
	seed := newSeed(t)
	p := startPair(t)
	sku := p.create(60, crowdLimit, "--slots", "16", "--open") // 3 or 4 units a slot, 3 in the reserve
	atOnce(24, func(i int) { p.buy(request{sku, fmt.Sprintf("b-%d", i), "k", 2}, crowdTries, always(i%2)) })
	sold := p.audit(sku)
	if left, _ := sum(p.shares(sku)); left != 60-sold || left == 0 {
		t.Fatalf("%d sold and %d left of 60", sold, left)
	}
	p.noUnmetRequest(sku, seed)
	if sold := p.audit(sku); sold != 60 {
		t.Errorf("%d units sold of 60 to buyers who asked until all were gone", sold)
	}
}
