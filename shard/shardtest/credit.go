package shardtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
)

func creditOf(r sale.AdmitRequest, epoch int64) sale.Credit {
	return sale.Credit{SKU: r.SKU, Share: r.Share, Epoch: epoch, Order: r.Order, Buyer: r.Buyer, Quantity: r.Quantity}
}

// credit gives one order back.
func (b *bench) credit(r sale.AdmitRequest, epoch int64, want bool) {
	b.Helper()
	if applied, err := b.gate.Credit(b.Context(), []sale.Credit{creditOf(r, epoch)}); err != nil || applied[0] != want {
		b.Fatalf("credit of %s's order: applied %v, %v", r.Buyer, applied, err)
	}
}

func testCredit(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	kept, open, doubtful := b.request("ann"), b.request("bob"), b.request("cid")
	ka := b.admit(kept, sale.Admitted)
	b.admit(open, sale.Admitted)
	da := b.admit(doubtful, sale.Admitted)
	b.settle(settled(kept, ka, true), settled(doubtful, da, false))
	unknown := b.request("dan")
	b.credit(kept, 2, false)
	b.credit(kept, 0x7fff, false)
	b.expect(0, 8, 1)
	for _, step := range []struct {
		order         sale.AdmitRequest
		left, pending int64
	}{
		{kept, 9, 1},
		{open, 10, 0},     // closed before its settlement came
		{doubtful, 10, 0}, // its unit was back already
		{unknown, 11, 0},
	} {
		for range 2 {
			b.credit(step.order, 1, true)
			b.expect(0, step.left, step.pending)
		}
		if a := b.admit(step.order, sale.Known); a.Quantity != 1 || !a.Decided {
			t.Fatalf("closed order %+v", a)
		}
	}
	b.settle(settled(kept, ka, true), settled(kept, ka, false))
	b.expect(0, 11, 0)
	two := b.request("ann") // her count came back too
	two.Quantity = 2
	b.admit(two, sale.Admitted)

	b.seal(0, 2, 10)
	b.credit(kept, 2, false)
	gone := kept
	gone.Share = 1
	b.credit(gone, 1, false)
	if n := b.raw.Exists(t.Context(), b.key(1, "stock"), b.key(1, "order")).Val(); n != 0 {
		t.Fatalf("a credit made %d keys", n)
	}
}

// testCreditBulk gives many orders of all shares back in one call, each twice and in no order, when some shares are not
// to be credited.
func testCreditBulk(t *testing.T, b *bench) {
	const each = 150 // more than one call of the script carries
	shares := sale.Shares(sale.MaxSlots)
	credits := make([]sale.Credit, 0, 2*each*len(shares))
	due := func(c sale.Credit) bool { return c.Share != 3 && c.Share != 4 && c.Share != 5 }
	for i, share := range shares {
		if share != 3 { // gone
			b.lay(share, 1, int64(i))
		}
		for n := range each {
			r := b.request(odd(n))
			r.Share, r.Quantity = share, int64(1+n%2)
			credits = append(credits, creditOf(r, 1), creditOf(r, 1))
		}
	}
	b.seal(4, 2, 1)
	b.lay(5, 7, 0)
	slices.SortStableFunc(credits, func(x, y sale.Credit) int { // shares take turns
		return int(x.Order[15]) - int(y.Order[15])
	})
	for range 2 {
		applied, err := b.gate.Credit(t.Context(), credits)
		if err != nil || len(applied) != len(credits) {
			t.Fatalf("%d of %d: %v", len(applied), len(credits), err)
		}
		for i, c := range credits {
			if applied[i] != due(c) {
				t.Fatalf("%+v applied %t", c, applied[i])
			}
		}
		for i, share := range shares {
			switch c := (sale.Credit{Share: share}); {
			case due(c):
				b.expect(share, int64(i)+each*3/2, 0)
			case share == 4:
				b.expect(share, int64(i), 0)
			default:
				b.expect(share, 0, 0)
			}
		}
	}
	if none, err := b.gate.Credit(t.Context(), nil); err != nil || len(none) != 0 {
		t.Fatalf("no credit: %v, %v", none, err)
	}
	bad := append(slices.Clone(credits[:3]), sale.Credit{SKU: b.sku, Epoch: 1, Buyer: "", Quantity: 1})
	bad[0].Order = b.id()
	before := b.dump(bad[0].Share)
	var input *sale.InputError
	if _, err := b.gate.Credit(t.Context(), bad); !errors.As(err, &input) || b.dump(bad[0].Share) != before {
		t.Fatalf("bad input among good: %v", err)
	}
}

// testCreditLost loses replies: what is not known to be applied may be, and giving back again is harmless.
func testCreditLost(t *testing.T, b *bench) {
	b.lay(0, 1, 0)
	b.lay(1, 1, 0)
	proxy := newProxy(t, b.address)
	gate := b.open(proxy.address(), nil)
	b.must(gate.Ping(t.Context()))
	var credits []sale.Credit
	for i := range 200 {
		r := b.request(odd(i))
		r.Share = sale.Share(i % 2)
		credits = append(credits, creditOf(r, 1))
	}
	before := proxy.scripts.Load()
	proxy.spoil.Store(spoilCut)
	applied, err := gate.Credit(t.Context(), credits)
	if err == nil || errors.Is(err, sale.ErrNotSent) || slices.Contains(applied, true) {
		t.Fatalf("lost replies: %v", err)
	}
	if n := proxy.scripts.Load() - before; n != 2 {
		t.Fatalf("%d scripts were sent for two shares", n)
	}
	proxy.spoil.Store(spoilNothing)
	b.eventually("the credits arrived", func() bool { return b.figures(0).Left == 100 && b.figures(1).Left == 100 })
	applied, err = gate.Credit(t.Context(), credits)
	if err != nil || slices.Contains(applied, false) {
		t.Fatalf("again: %v", err)
	}
	b.expect(0, 100, 0)
	b.expect(1, 100, 0)
}

// testCreditPassesLanes holds as many flushes back as a lane may have on their way: credits do not wait behind them, nor
// the other way round.
func testCreditPassesLanes(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	slow, direct := newProxy(t, b.address), b.gate
	gate := b.open(slow.address(), nil)
	b.must(gate.Ping(t.Context()))
	slow.hold()
	buyer := 0
	wait := b.occupy(gate, slow, func() sale.AdmitRequest { buyer++; return b.request(fmt.Sprint("b", buyer)) })
	waiting := slow.waiting.Load()
	var done atomic.Bool
	var credited error
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, credited = gate.Credit(t.Context(), []sale.Credit{creditOf(b.request("cid"), 1)})
		done.Store(true)
	}()
	b.eventually("a credit on its way beside the lane", func() bool { return slow.waiting.Load() > waiting })
	if gate.Waiting() != 0 || done.Load() {
		t.Fatalf("%d calls wait in the lane", gate.Waiting())
	}
	if _, err := direct.Credit(t.Context(), []sale.Credit{creditOf(b.request("dan"), 1)}); err != nil {
		t.Fatal(err)
	}
	slow.release()
	wait()
	select {
	case <-finished:
	case <-time.After(patientForIt):
		t.Fatal("the credit does not end")
	}
	b.must(credited)
	b.expect(0, 10, 2)
}
