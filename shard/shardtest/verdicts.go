package shardtest

import (
	"strings"
	"sync"
	"testing"

	"stockade/biz/sale"
)

func testVerdicts(t *testing.T, b *bench) {
	b.admit(b.request("ann"), sale.Gone)
	if n, err := b.raw.Exists(t.Context(), b.key(0, "stock"), b.key(0, "order")).Result(); err != nil || n != 0 {
		t.Fatalf("asking a share that is gone made %d keys: %v", n, err)
	}

	b.lay(0, 1, 3)
	first := b.request("ann")
	a := b.admit(first, sale.Admitted)
	if want := (sale.Token{Epoch: 1, Change: a.Changes}); a.Token != want || a.Left != 2 || a.Epoch != 1 {
		t.Fatalf("admission %+v, want token %+v and 2 left", a, want)
	}
	again := b.admit(first, sale.Known)
	if again.Token != a.Token || again.Quantity != 1 || again.Left != 2 || again.Changes != a.Changes {
		t.Fatalf("repetition %+v of %+v", again, a)
	}
	b.expect(0, 2, 1)

	many := b.request("bob")
	many.Quantity, many.Limit = 3, 10 // one more than there is
	if a := b.admit(many, sale.Empty); a.Left != 2 || a.Doubtful {
		t.Fatalf("refusal %+v", a)
	}
	many.Quantity = 2
	b.admit(many, sale.Admitted)
	b.admit(b.request("cid"), sale.Empty)
	b.expect(0, 0, 3)

	stale := b.request("dan")
	stale.Epoch = 2
	if a := b.admit(stale, sale.Stale); a.Epoch != 1 || a.Left != 0 {
		t.Fatalf("stale %+v", a)
	}
	if _, err := b.gate.Seal(t.Context(), b.sku, 0, 3, 10); err != nil {
		t.Fatal(err)
	}
	sealed := b.request("dan")
	sealed.Epoch = 3
	if a := b.admit(sealed, sale.Stale); a.Epoch != 3 {
		t.Fatalf("sealed %+v", a)
	}
	b.admit(first, sale.Stale) // a known id too: its epoch is over
}

func testLimit(t *testing.T, b *bench) {
	b.lay(0, 1, 100)
	r1, r2, r3 := b.request("ann"), b.request("ann"), b.request("ann")
	a1 := b.admit(r1, sale.Admitted)
	b.admit(r2, sale.Admitted)
	b.admit(r3, sale.NearLimit) // both are undecided
	b.settle(settled(r1, a1, true))
	b.admit(r3, sale.NearLimit) // one decided, one not
	two := b.request("ann")
	two.Quantity = 2
	b.admit(two, sale.AtLimit) // 1 decided + 2 is too many whatever becomes of the other
	over := b.request("bob")
	over.Quantity = 3
	b.admit(over, sale.AtLimit)
	b.admit(b.request("bob"), sale.Admitted) // a refusal leaves no trace
	b.expect(0, 97, 2)
}

// testBatch has many callers share one flush, more than one script call carries, with one id again and again among them.
func testBatch(t *testing.T, b *bench) {
	const callers, left = 600, 40
	b.lay(0, 1, left)
	b.lay(sale.Reserve, 1, left)
	proxy := newProxy(t, b.address)
	gate := b.open(proxy.address(), nil)
	b.must(gate.Ping(t.Context()))
	proxy.hold()
	busy := b.occupy(gate, proxy, func() sale.AdmitRequest {
		return sale.AdmitRequest{SKU: b.sku, Share: 1, Epoch: 1, Buyer: "x", Quantity: 1, Limit: 1}
	})
	twice := b.request("twice")
	verdicts := map[sale.Verdict]int{}
	twiceTokens := map[sale.Token]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range callers {
		r := twice
		if i%3 > 0 {
			r = b.request(odd(i))
			r.Share = sale.Share(i%2) - 1 // slot 0 or the reserve
		}
		wg.Go(func() {
			a, err := gate.Admit(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			verdicts[a.Verdict]++
			if r.Order == twice.Order && a.Verdict != sale.Empty {
				twiceTokens[a.Token]++
			}
		})
	}
	b.eventually("all callers in the queue", func() bool { return gate.Waiting() == callers })
	before := proxy.scripts.Load()
	proxy.release()
	wg.Wait()
	busy()
	// One call asks for a buyer once: the one who asks 200 times in slot 0 is what takes 200 calls.
	if n := proxy.scripts.Load() - before; n < callers/3 || n > callers/3+10 {
		t.Errorf("%d scripts for %d callers", n, callers)
	}
	if len(twiceTokens) > 1 {
		t.Fatalf("one id was taken under several tokens: %v", twiceTokens)
	}
	if verdicts[sale.Admitted] != 2*left {
		t.Fatalf("verdicts %v, want %d admitted", verdicts, 2*left)
	}
	b.expect(0, 0, left)
	b.expect(sale.Reserve, 0, left)
}

// odd makes buyer ids that a careless key, separator or pattern would trip over.
func odd(i int) string {
	all := []string{
		"plain", "{brace}", "}{", "two words", " ", "a:b", "ünï→∞", "12 3.4 5", "%d%s", "nul\x00nul", "\r\n$3\r\nDEL",
		"\xff\xfe", strings.Repeat("x", sale.MaxBuyerID-4),
	}
	name := all[i%len(all)]
	return name + string(rune('A'+i/len(all)%26)) + string(rune('A'+i/len(all)/26))
}
