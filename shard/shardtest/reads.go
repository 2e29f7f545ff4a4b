package shardtest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
)

func testOverdue(t *testing.T, b *bench) {
	b.lay(0, 1, 100)
	var want []sale.OrderID
	requests := map[sale.OrderID]sale.AdmitRequest{}
	tokens := map[sale.OrderID]sale.Token{}
	for i := range 5 {
		r := b.request(odd(i))
		r.Quantity = 2
		tokens[r.Order] = b.admit(r, sale.Admitted).Token
		requests[r.Order], want = r, append(want, r.Order)
	}
	decided := b.request("decided")
	b.settle(settled(decided, b.admit(decided, sale.Admitted), true))
	takes, err := b.gate.Overdue(t.Context(), b.sku, 0, 0, 100)
	b.must(err)
	var got []sale.OrderID
	for _, take := range takes {
		r := requests[take.Order]
		if take.Buyer != r.Buyer || take.Quantity != 2 || take.Token != tokens[take.Order] {
			t.Fatalf("overdue %+v of %+v", take, r)
		}
		got = append(got, take.Order)
	}
	if !slices.Equal(got, want) { // ids grow, so equal times keep the order too
		t.Fatalf("overdue %v, want %v", got, want)
	}
	few, err := b.gate.Overdue(t.Context(), b.sku, 0, 0, 2)
	if err != nil || len(few) != 2 || few[0].Order != want[0] {
		t.Fatalf("the oldest two: %v, %v", few, err)
	}
	for _, share := range []sale.Share{0, 1} {
		none, err := b.gate.Overdue(t.Context(), b.sku, share, time.Hour, 100)
		if err != nil || len(none) != 0 {
			t.Fatalf("overdue for an hour: %v, %v", none, err)
		}
	}
}

// testWinners reads winners while buyers win and lose: none who held units at the change number may be missing.
func testWinners(t *testing.T, b *bench) {
	const writers, each = 4, 400
	b.lay(0, 1, 1_000_000)
	type win struct {
		hash    uint64
		changes int64
	}
	var mu sync.Mutex
	var wins []win
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r := b.request("w" + strconv.Itoa(w) + "-" + strconv.Itoa(i))
				a, err := b.gate.Admit(t.Context(), r)
				if err != nil || a.Verdict != sale.Admitted {
					t.Errorf("%+v, %v", a, err)
					return
				}
				mu.Lock()
				wins = append(wins, win{xxhash.Sum64String(r.Buyer), a.Changes})
				mu.Unlock()
				if i%7 == 0 {
					b.gate.SettleLater(settled(r, a, i%2 == 0))
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	for last := false; !last; {
		select {
		case <-finished:
			last = true
		default:
		}
		found, err := b.gate.Winners(t.Context(), b.sku, []sale.Share{0})
		if err != nil || len(found) != 1 || found[0].Epoch != 1 {
			t.Fatalf("winners %+v, %v", found, err)
		}
		w := found[0]
		mu.Lock()
		for _, one := range wins {
			if _, ok := slices.BinarySearch(w.Hashes, one.hash); !ok && one.changes <= w.Changes {
				t.Fatalf("who won at change %d is missing at %d", one.changes, w.Changes)
			}
		}
		mu.Unlock()
		if last && len(w.Hashes) != writers*each {
			t.Fatalf("%d winners at the end, want %d", len(w.Hashes), writers*each)
		}
	}
}

func testWinnersLeftOut(t *testing.T, b *bench) {
	b.lay(1, 1, 10)
	b.lay(2, 1, 10)
	b.seal(2, 2, 10)
	found, err := b.gate.Winners(t.Context(), b.sku, []sale.Share{0, 1, 2, sale.Reserve})
	if err != nil || len(found) != 1 || found[0].Share != 1 || len(found[0].Hashes) != 0 {
		t.Fatalf("winners of a gone, an open and a sealed share: %+v, %v", found, err)
	}
	if none, err := b.gate.Winners(t.Context(), b.sku, nil); err != nil || len(none) != 0 {
		t.Fatalf("winners of no share: %+v, %v", none, err)
	}
}

func testIdentity(t *testing.T, b *bench) {
	first, err := b.gate.Identity(t.Context())
	b.must(err)
	second, err := b.open(b.address, nil).Identity(t.Context())
	if err != nil || second != first {
		t.Fatalf("two identities of one server: %q and %q, %v", first, second, err)
	}
	b.must(b.gate.Ping(t.Context()))
}

func testHints(t *testing.T, b *bench) {
	proxy := newProxy(t, b.address)
	heard := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	listener := b.open(proxy.address(), nil)
	ended := make(chan struct{})
	go func() {
		listener.Listen(ctx, func(sku string) { heard <- sku })
		close(ended)
	}()
	expect := func(want string) {
		t.Helper()
		for timeout := time.After(patientForIt); ; {
			select {
			case got := <-heard:
				if got == want {
					return
				}
			case <-timeout:
				t.Fatalf("hint %q was not heard", want)
			}
		}
	}
	expect("") // subscribed
	b.must(b.gate.Send(t.Context(), "demo"))
	expect("demo")
	proxy.cut()
	expect("") // subscribed anew
	b.must(b.gate.Send(t.Context(), "other"))
	expect("other")
	cancel()
	select {
	case <-ended:
	case <-time.After(patientForIt):
		t.Fatal("the listener does not end")
	}
}
