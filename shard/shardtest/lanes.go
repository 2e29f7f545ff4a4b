package shardtest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/shard"
)

// testLastUnit races 200 buyers on two gates for one unit.
func testLastUnit(t *testing.T, b *bench) {
	b.lay(0, 1, 1)
	gates := []*shard.Gate{b.gate, b.open(b.address, nil)}
	var won, empty atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			a, err := gates[i%2].Admit(t.Context(), b.request(odd(i)))
			switch {
			case err != nil:
				t.Error(err)
			case a.Verdict == sale.Admitted:
				won.Add(1)
			case a.Verdict == sale.Empty:
				empty.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || empty.Load() != 199 {
		t.Fatalf("%d won, %d came too late", won.Load(), empty.Load())
	}
	b.expect(0, 0, 1)
}

func testSettleLater(t *testing.T, b *bench) {
	const takes = 1000 // more than one call carries
	gate := b.open(b.address, nil)
	b.lay(0, 1, takes)
	b.lay(1, 1, takes)
	var all []sale.Settlement
	for i := range takes {
		r := b.request(odd(i))
		r.Share = sale.Share(i % 2)
		all = append(all, settled(r, b.admit(r, sale.Admitted), i%4 < 2))
	}
	gate.SettleLater(all...)
	b.must(gate.Close()) // which settles what waits
	b.expect(0, takes-takes/4, 0)
	b.expect(1, takes-takes/4, 0)
	gate.SettleLater(all[0])
	if _, err := gate.Admit(t.Context(), b.request("late")); !errors.Is(err, sale.ErrShuttingDown) {
		t.Fatalf("a closed gate: %v", err)
	}
	if err := gate.Settle(t.Context(), all[0]); !errors.Is(err, sale.ErrShuttingDown) {
		t.Fatalf("a closed gate: %v", err)
	}
}

// switchBreaker refuses while it is on, and counts what it hears.
type switchBreaker struct {
	refuse       atomic.Bool
	flushes, bad atomic.Int64
}

var errRefused = errors.New("refused")

func (s *switchBreaker) Allow() (func(error, time.Duration), error) {
	if s.refuse.Load() {
		return nil, errRefused
	}
	return func(err error, took time.Duration) {
		s.flushes.Add(1)
		if err != nil || took <= 0 {
			s.bad.Add(1)
		}
	}, nil
}

func testBreaker(t *testing.T, b *bench) {
	breaker := &switchBreaker{}
	var names []string
	proxy := newProxy(t, b.address)
	gate := b.open(proxy.address(), nil, shard.WithBreaker(func(master string) shard.Breaker {
		names = append(names, master)
		return breaker
	}))
	b.lay(0, 1, 10)
	if _, err := gate.Admit(t.Context(), b.request("ann")); err != nil {
		t.Fatal(err)
	}
	breaker.refuse.Store(true)
	_, err := gate.Admit(t.Context(), b.request("bob"))
	if !errors.Is(err, sale.ErrNotSent) || !errors.Is(err, errRefused) {
		t.Fatalf("refused by the breaker: %v", err)
	}
	b.expect(0, 9, 1)
	if n, bad := breaker.flushes.Load(), breaker.bad.Load(); n != 1 || bad != 0 || len(names) != 1 {
		t.Fatalf("breakers %v heard of %d flushes, %d bad", names, n, bad)
	}
	breaker.refuse.Store(false)
	proxy.spoil.Store(spoilCut)
	if _, err := gate.Admit(t.Context(), b.request("cid")); err == nil {
		t.Fatal("a lost reply is no error")
	}
	if n, bad := breaker.flushes.Load(), breaker.bad.Load(); n != 2 || bad != 1 {
		t.Fatalf("the breaker heard of %d flushes, %d bad", n, bad)
	}
}

func testBadInput(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	before := b.dump(0)
	for _, change := range []func(*sale.AdmitRequest){
		func(r *sale.AdmitRequest) { r.SKU = "a{b}" },
		func(r *sale.AdmitRequest) { r.SKU = "" },
		func(r *sale.AdmitRequest) { r.Share = sale.MaxSlots },
		func(r *sale.AdmitRequest) { r.Share = -2 },
		func(r *sale.AdmitRequest) { r.Buyer = "" },
		func(r *sale.AdmitRequest) { r.Buyer = strings.Repeat("x", sale.MaxBuyerID+1) },
		func(r *sale.AdmitRequest) { r.Quantity = 0 },
		func(r *sale.AdmitRequest) { r.Quantity = -1 },
		func(r *sale.AdmitRequest) { r.Quantity = 1<<16 + 1 },
		func(r *sale.AdmitRequest) { r.Limit = 0 },
		func(r *sale.AdmitRequest) { r.Limit = 1<<16 + 1 },
		func(r *sale.AdmitRequest) { r.Epoch = 0 },
		func(r *sale.AdmitRequest) { r.Epoch = 1 << 62 },
	} {
		r := b.request("ann")
		change(&r)
		var bad *sale.InputError
		if a, err := b.gate.Admit(t.Context(), r); !errors.As(err, &bad) {
			t.Errorf("%+v: %+v, %v", r, a, err)
		}
	}
	for _, slots := range []int{0, -1, sale.MaxSlots + 1} {
		if _, err := b.gate.Peek(t.Context(), b.sku, slots); err == nil {
			t.Errorf("%d slots were read", slots)
		}
	}
	if after := b.dump(0); after != before {
		t.Fatalf("bad input changed the share:\n%s\n%s", before, after)
	}
}
