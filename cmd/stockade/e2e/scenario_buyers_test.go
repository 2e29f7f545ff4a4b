//go:build services

package e2e_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

const clicks = 1000

// One buyer clicks a thousand times on both nodes while orders cannot be written yet: one unit goes, under one id.
func TestScenario03OneKeyIsOneOrder(t *testing.T) {
	broker, settings := brokerProxy(t)
	p := startPair(t, settings)
	sku := p.create(100, 2, "--open")
	broker.Cut()
	r := request{sku, "impatient", "the-one", 1}
	ids := make([]string, clicks)
	atOnce(clicks, func(i int) {
		if a := p.buy(r, manyTries, always(i%2)); a.Code == accepted {
			ids[i] = a.OrderID
		} else {
			t.Errorf("click %d: %v", i, a)
		}
	})
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("one key became the orders %s and %s", ids[0], id)
		}
	}
	for i := range p.nodes {
		if o, ok := p.order(p.node(i), r.buyer, ids[0]); !ok || o.State != sale.OrderQueued {
			t.Errorf("node %d before the order row exists: %+v, want QUEUED", i, o)
		}
	}
	if left, pending := sum(p.shares(sku)); left != 99 {
		t.Errorf("%d left and %d pending of 100 after one order", left, pending)
	}
	broker.Mend()
	if sold := p.audit(sku); sold != 1 {
		t.Errorf("%d units sold to one key", sold)
	}
	p.everyOrderIsCreated(sku)
}

// A thousand clicks with keys of their own never hold more than the limit, before and after orders are written.
func TestScenario03ManyKeysKeepTheLimit(t *testing.T) {
	const limit = 2
	broker, settings := brokerProxy(t)
	p := startPair(t, settings)
	sku := p.create(100, limit, "--open")
	broker.Cut()
	click := func(round string) {
		atOnce(clicks, func(i int) {
			a := p.buy(request{sku, "greedy", fmt.Sprintf("%s-%d", round, i), 1}, manyTries, always(i%2))
			if a.Code != accepted && a.Code != limitReached {
				t.Errorf("click %d: %v", i, a)
			}
		})
		if won := len(p.told.winners(sku)); won != limit {
			t.Errorf("%s: %d orders of one unit, the limit is %d", round, won, limit)
		}
	}
	click("queued")
	broker.Mend()
	p.settle(sku)
	click("written")
	if sold := p.audit(sku); sold != limit {
		t.Errorf("%d units sold to one buyer, the limit is %d", sold, limit)
	}
}

// brokerProxy puts a proxy between nodes and RabbitMQ.
func brokerProxy(t *testing.T) (p *proctest.Proxy, setting string) {
	t.Helper()
	u, err := url.Parse(shop.amqp)
	if err != nil {
		t.Fatal("STOCKADE_TEST_AMQP is no URL")
	}
	p = proctest.NewProxy(t, u.Host)
	u.Host = p.Address()
	return p, "mq.url=" + u.String()
}

// Whatever the reason why a SKU is not on sale: nothing is taken.
func TestScenario04NothingIsTakenOffSale(t *testing.T) {
	const total = 50
	p := startPair(t)
	sku := p.create(total, 2)
	round := 0
	offSale := func(reason string, laid bool) {
		t.Helper()
		round++
		for i := range p.nodes {
			eventually(t, flagBound, "node still sells", func() bool {
				return p.ask(i, request{sku, "too-late", fmt.Sprintf("%d", round), 1}).Code == notOnSale
			})
		}
		before := p.shares(sku)
		atOnce(100, func(i int) {
			r := request{sku, fmt.Sprintf("b-%d", i%20), fmt.Sprintf("%d-%d", round, i), int64(1 + i%3)}
			a := p.buy(r, manyTries, always(i%2))
			if a.Code != notOnSale || a.Reason != reason {
				t.Errorf("%v, want NOT_ON_SALE with %s", a, reason)
			}
		})
		for i, s := range p.shares(sku) {
			if s != before[i] || s.Gone == laid {
				t.Errorf("%s: share %+v became %+v", reason, before[i], s)
			}
		}
	}
	offSale("NOT_STARTED", false) // DRAFT
	p.node(0).CLI("sku", "load", sku)
	offSale("NOT_STARTED", true) // LOADED
	p.node(1).CLI("sku", "open", sku)
	for i := range p.nodes {
		eventually(t, flagBound, "node sells", func() bool {
			return p.buy(request{sku, fmt.Sprintf("on-time-%d", i), "k", 1}, 1, always(i)).Code == accepted
		})
	}
	p.node(0).CLI("sku", "pause", sku)
	offSale("PAUSED", true)
	p.replays(sku) // a winner hears of the order all the same
	p.node(1).CLI("sku", "close", sku)
	offSale("ENDED", true)
	if sold := p.audit(sku); sold < 2 || sold != int64(len(p.told.winners(sku))) {
		t.Errorf("%d units sold, %d winners", sold, len(p.told.winners(sku)))
	}
}

// Before opens_at nothing is taken, from then on it sells.
func TestScenario04OpeningTime(t *testing.T) {
	p := startPair(t)
	opens := time.Now().Add(4 * time.Second).Truncate(time.Second)
	sku := p.create(50, 1, "--opens-at", opens.UTC().Format(time.RFC3339), "--open")
	initial := p.shares(sku)
	rounds := 0
	for ; time.Until(opens) > 500*time.Millisecond; rounds++ {
		atOnce(50, func(i int) {
			a := p.ask(i%2, request{sku, fmt.Sprintf("early-%d", i), fmt.Sprint(rounds), 1})
			if a.Code != notOnSale || a.Reason != "NOT_STARTED" || !a.OpensAt.Equal(opens) {
				t.Errorf("before the opening: %v opening at %v, want NOT_STARTED and %v", a, a.OpensAt, opens)
			}
		})
		if now := p.shares(sku); !slices.Equal(now, initial) {
			t.Fatalf("requests before the opening changed %+v to %+v", initial, now)
		}
	}
	t.Logf("%d rounds of requests before the opening", rounds)
	atOnce(len(p.nodes), func(node int) {
		for n := 0; ; n++ {
			a := p.ask(node, request{sku, fmt.Sprintf("b-%d-%d", node, n), "k", 1})
			now := time.Now()
			switch {
			case a.Code == accepted && now.Before(opens):
				t.Errorf("node %d sold %v before the opening", node, opens.Sub(now))
				return
			case a.Code == accepted:
				return
			case now.Sub(opens) > flagBound:
				t.Errorf("node %d, %v after the opening: %v", node, now.Sub(opens), a)
				return
			}
		}
	})
	p.audit(sku)
}

// The limit holds when a buyer's orders race on both nodes, for every mix of quantities.
func TestScenario04LimitUnderConcurrency(t *testing.T) {
	const buyers, keys, limit = 25, 12, 3
	p := startPair(t)
	for _, flags := range [][]string{
		{"--slots", "4", "--reserve-pct", "5"},
		{"--slots", "32", "--reserve-pct", "50"}, // homes run empty, so that buyers hold units in two shares
	} {
		sku := p.create(buyers*limit+30, limit, append(flags, "--open")...)
		atOnce(buyers*keys, func(i int) {
			r := request{sku, fmt.Sprintf("b-%d", i%buyers), fmt.Sprintf("k-%d", i/buyers), int64(1 + (i/buyers)%2)}
			p.buy(r, 20, always((i/buyers)%2))
		})
		sold := p.audit(sku)
		t.Logf("%d units sold to %d buyers at limit %d", sold, buyers, limit)
		if sold > buyers*limit || sold < buyers*limit/2 {
			t.Errorf("%d units sold to %d buyers at limit %d", sold, buyers, limit)
		}
	}
}

// A refusal leaves no mark on the buyer, on other buyers, or on the SKU.
func TestScenario07RefusalsLeaveNoMark(t *testing.T) {
	p := startPair(t)
	sku := p.create(6, 2, "--slots", "1", "--open")
	fresh := 0
	for i := range p.nodes {
		at := always(i)
		name := func(who string) string { return fmt.Sprintf("%s-%d", who, i) }
		expect := func(buyer, key string, quantity int64, want string) {
			t.Helper()
			r := request{sku, name(buyer), key, quantity}
			if a := p.buy(r, manyTries, at); a.Code != want {
				t.Errorf("node %d: %+v: %v, want %s", i, r, a, want)
			}
		}
		soon := func(buyer, key string) {
			t.Helper()
			eventually(t, flagBound, "node "+p.node(i).Name+" sells to "+buyer, func() bool {
				return p.buy(request{sku, name(buyer), key, 1}, 1, at).Code == accepted
			})
		}
		soon("saver", "first")
		expect("saver", "too-many", 2, limitReached) // by what the buyer holds
		expect("saver", "far-too-many", 3, limitReached)
		expect("saver", "second", 1, accepted) // the refusals did not count
		expect("saver", "third", 1, limitReached)
		expect("other", "k", 1, accepted)
		for left, _ := sum(p.shares(sku)); left > 0; left-- {
			fresh++
			expect(fmt.Sprintf("filler-%d", fresh), "k", 1, accepted)
		}
		for range 20 {
			expect("unlucky", "refused", 1, soldOut)
			expect("unlucky", "refused-too", 2, soldOut)
		}
		p.adjust(sku, 4)
		soon("unlucky", "new-key")
		soon("unlucky", "refused") // a refusal is not stored under its key
		soon("stranger", "k")
		expect("unlucky", "over", 1, limitReached)

		p.node(i).CLI("sku", "pause", sku)
		expect("paused", "k", 1, notOnSale)
		p.node(1-i).CLI("sku", "open", sku)
		if left, _ := sum(p.shares(sku)); left == 0 {
			p.adjust(sku, 2)
		}
		soon("paused", "k")
		p.adjust(sku, 6)
	}
	p.audit(sku)
}
