//go:build services

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
)

// The crowd of TestContention.
const (
	crowd       = 10_000
	crowdUnits  = 500
	crowdLimit  = 2
	crowdAtOnce = 256 // buyers that are busy at the same time
	crowdTries  = 4   // a buyer's patience
)

// flagBound is how long a node may tell SOLD_OUT after stock came back.
const flagBound = 2 * time.Second

// newRand returns a source for one of many goroutines.
func newRand(seed uint64, stream int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(stream))) }

func newSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

func TestContention(t *testing.T) {
	seed := newSeed(t)
	p := startPair(t)
	sku := p.create(crowdUnits, crowdLimit, "--open")
	begun := time.Now()
	p.rush(sku, seed)
	t.Logf("%d buyers in %v: %v", crowd, time.Since(begun).Round(time.Millisecond), p.told.codes[sku])

	settled := p.settle(sku)
	sold := p.audit(sku)
	t.Logf("sold %d of %d, settled in %v", sold, crowdUnits, settled.Round(time.Millisecond))
	p.noUnmetRequest(sku, seed)
	if sold := p.audit(sku); sold != crowdUnits {
		t.Errorf("sold %d units to buyers who asked until all were gone, want %d", sold, crowdUnits)
	}
	for node := range p.nodes {
		for quantity := int64(1); quantity <= crowdLimit; quantity++ {
			a := p.buy(request{sku, fmt.Sprintf("late-%d-%d", node, quantity), "k", quantity}, manyTries, always(node))
			if a.Code != soldOut {
				t.Errorf("node %d: %d units of none: %v, want SOLD_OUT", node, quantity, a)
			}
		}
		a := p.ask(node, request{sku, fmt.Sprintf("greedy-%d", node), "k", crowdLimit + 1})
		if a.Code != limitReached || a.Limit != crowdLimit {
			t.Errorf("node %d: %d units at limit %d: %v, want LIMIT_REACHED", node, crowdLimit+1, crowdLimit, a)
		}
	}
	p.replays(sku)
	p.everyOrderIsCreated(sku)
	if sold := p.audit(sku); sold != crowdUnits {
		t.Errorf("after the replays %d units are sold, want %d", sold, crowdUnits)
	}
	if n := p.told.count(sku, noAnswer); n > 0 {
		t.Errorf("%d requests got no answer", n)
	}
}

// rush lets the crowd in: some buyers ask twice at once, or later, some for a second order.
func (p *pair) rush(sku string, seed uint64) {
	each(crowd, crowdAtOnce, func(i int) { p.visit(sku, i, newRand(seed, i)) })
}

// visit is one buyer's stay.
func (p *pair) visit(sku string, i int, rng *rand.Rand) {
	first := request{sku, fmt.Sprintf("buyer-%d", i), "first", 1 + rng.Int64N(3)}
	home := rng.IntN(2)
	asks := []request{first}
	nodes := []int{home}
	repeats, later := rng.IntN(5) == 0, rng.IntN(2) == 0
	if repeats && !later {
		asks, nodes = append(asks, first, first), append(nodes, home, 1-home)
	}
	if rng.IntN(10) == 0 {
		asks, nodes = append(asks, request{sku, first.buyer, "second", 1 + rng.Int64N(2)}), append(nodes, rng.IntN(2))
	}
	if len(asks) == 1 {
		p.buy(first, crowdTries, always(home))
	} else {
		atOnce(len(asks), func(i int) { p.buy(asks[i], crowdTries, always(nodes[i])) })
	}
	if repeats && later {
		p.buy(first, crowdTries, always(1-home))
	}
}

// noUnmetRequest buys what is left with fresh buyers. Whoever asks for no more than that gets it when home or reserve
// have it, and is told to ask again when they do not; SOLD_OUT may be said for as long as a flag lives.
func (p *pair) noUnmetRequest(sku string, seed uint64) {
	p.t.Helper()
	rng := newRand(seed, crowd)
	begun, bought := time.Now(), 0
	expect := func(shares []share, buyer string, quantity int64, want string) {
		r, at := request{sku, buyer, "k", quantity}, always(rng.IntN(2))
		a := p.buy(r, crowdTries, at)
		for a.Code != want && time.Since(begun) < flagBound {
			a = p.buy(r, crowdTries, at)
		}
		if a.Code != want {
			p.t.Fatalf("%+v while the shares hold %+v: %v, want %s", r, shares, a, want)
		}
	}
	for _, quantity := range []int64{crowdLimit, 1} {
		p.settle(sku)
		shares := p.shares(sku)
		left, _ := sum(shares)
		if buyer, ok := p.newcomer(shares, quantity, false); ok && left >= quantity {
			expect(shares, buyer, quantity, retry)
		}
		for ; ; bought++ {
			p.settle(sku)
			shares = p.shares(sku)
			buyer, ok := p.newcomer(shares, quantity, true)
			if !ok {
				break
			}
			expect(shares, buyer, quantity, accepted)
		}
	}
	p.t.Logf("%d fresh buyers bought the rest", bought)
}

// newcomer finds a buyer who never came before and can, or cannot, reach quantity units; ok is false when there is none.
func (p *pair) newcomer(shares []share, quantity int64, within bool) (buyer string, ok bool) {
	for range 1000 {
		p.newcomers++
		buyer = fmt.Sprintf("fresh-%d", p.newcomers)
		if served(shares, buyer, quantity) == within {
			return buyer, true
		}
	}
	return "", false
}

// served tells whether a buyer's home or the reserve has enough.
func served(shares []share, buyer string, quantity int64) bool {
	slots := len(shares) - 1
	return shares[homeOf(buyer, slots)].Left >= quantity || shares[slots].Left >= quantity
}

// replays asks again for every order, on both nodes: the answer is the same order, also now that nothing is left.
func (p *pair) replays(sku string) {
	p.t.Helper()
	var asks []request
	ids := map[request]string{}
	for id, r := range p.told.winners(sku) {
		ids[r] = id
		asks = append(asks, r)
	}
	until := p.told.lastWin.Add(flagBound) // before, a node may not know yet who won on the other
	each(len(asks)*len(p.nodes), 32, func(i int) {
		r, node := asks[i/len(p.nodes)], i%len(p.nodes)
		a := p.buy(r, manyTries, always(node))
		for a.Code == soldOut && time.Now().Before(until) {
			time.Sleep(tryPause)
			a = p.buy(r, manyTries, always(node))
		}
		if a.Code != accepted || a.OrderID != ids[r] || !a.replayed {
			p.t.Errorf("node %d: the winner %+v of %s asks again: %v, replayed %v", node, r, ids[r], a, a.replayed)
		}
	})
}

// everyOrderIsCreated has every winner look at the order, on a node that runs.
func (p *pair) everyOrderIsCreated(sku string) {
	p.t.Helper()
	winners := p.told.winners(sku)
	var ids []string
	for id := range winners {
		ids = append(ids, id)
	}
	each(len(ids), 32, func(i int) {
		n := p.node(i % len(p.nodes))
		if !n.Alive() {
			n = p.survivor()
		}
		r := winners[ids[i]]
		o, ok := p.order(n, r.buyer, ids[i])
		if !ok || o.State != sale.OrderCreated || o.Quantity != r.quantity || o.SKU != sku {
			p.t.Errorf("order %s of %+v: %+v", ids[i], r, o)
		}
	})
}

// each calls f for 0 to n−1, some of them at the same time.
func each(n, atOnce int, f func(i int)) {
	turns := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range turns {
				f(i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	workers.Wait()
}
