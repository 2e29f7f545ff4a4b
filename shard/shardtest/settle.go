package shardtest

import (
	"testing"

	"stockade/biz/sale"
)

func testSettle(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	kept, dropped := b.request("ann"), b.request("bob")
	kept.Quantity, dropped.Quantity = 2, 2
	ka, da := b.admit(kept, sale.Admitted), b.admit(dropped, sale.Admitted)
	b.expect(0, 6, 4)

	other := settled(kept, ka, false)
	other.Token.Change += 100
	unknown := settled(b.request("ann"), ka, false)
	before := b.dump(0)
	b.settle(other, unknown)
	if after := b.dump(0); after != before {
		t.Fatalf("settling another take changed the share:\n%s\n%s", before, after)
	}

	for range 2 { // twice is once
		b.settle(settled(kept, ka, true), settled(dropped, da, false))
		b.expect(0, 8, 0)
	}
	b.settle(settled(kept, ka, false)) // what is kept stays kept
	b.expect(0, 8, 0)
	if n, err := b.raw.ZCard(t.Context(), b.key(0, "journal")).Result(); err != nil || n != 0 {
		t.Fatalf("journal holds %d: %v", n, err)
	}
	if a := b.admit(kept, sale.Known); a.Token != ka.Token || a.Quantity != 2 {
		t.Fatalf("kept take %+v became %+v", ka, a)
	}
	if units, err := b.raw.HGet(t.Context(), b.key(0, "buyer"), "bob").Result(); err != nil || units != "0:0" {
		t.Fatalf("dropped buyer's field %q, %v", units, err)
	}

	gone := settled(kept, ka, true)
	gone.Share = 1
	b.settle(gone) // a share that is gone has nothing to settle
	if n, err := b.raw.Exists(t.Context(), b.key(1, "stock"), b.key(1, "order")).Result(); err != nil || n != 0 {
		t.Fatalf("settling made %d keys: %v", n, err)
	}
}

func testDoubtful(t *testing.T, b *bench) {
	b.lay(0, 1, 2)
	r := b.request("ann")
	r.Quantity = 2
	first := b.admit(r, sale.Admitted)
	b.settle(settled(r, first, false))
	second := b.admit(r, sale.Admitted) // a dropped id may be taken anew
	if second.Token == first.Token {
		t.Fatalf("two takes have one token: %+v", second)
	}
	b.settle(settled(r, first, false), settled(r, first, true)) // the first take's end is told late
	b.expect(0, 0, 2)
	b.settle(settled(r, second, false))

	bob := b.request("bob")
	ba := b.admit(bob, sale.Admitted)
	if a := b.admit(r, sale.Empty); !a.Doubtful {
		t.Fatalf("refusal of a doubtful id %+v", a)
	}
	r.Limit = 1
	if a := b.admit(r, sale.AtLimit); !a.Doubtful {
		t.Fatalf("refusal of a doubtful id %+v", a)
	}
	r.Limit, r.Quantity = 2, 2

	// It was promised after all: its units are taken again as far as they are there, and its buyer has them. What is not
	// there is missing until it comes back.
	b.settle(settled(r, second, true))
	b.expect(0, 0, 1)
	b.expectShort(1)
	if a := b.admit(r, sale.Known); a.Quantity != 2 || !a.Decided {
		t.Fatalf("retaken %+v", a)
	}
	b.admit(b.request("ann"), sale.AtLimit)
	before := b.dump(0)
	b.settle(settled(r, second, true), settled(r, second, false))
	if after := b.dump(0); after != before {
		t.Fatalf("telling it twice changed the share:\n%s\n%s", before, after)
	}
	b.admit(b.request("cid"), sale.Empty)
	b.settle(settled(bob, ba, false)) // MySQL had no unit for him any more
	b.expect(0, 0, 0)
	b.expectShort(0)
	b.credit(r, 1, true)
	b.expect(0, 2, 0)
	b.expectShort(0)
}

// expectShort expects slot 0 to miss units.
func (b *bench) expectShort(want int64) {
	b.Helper()
	if f := b.figures(0); f.Short != want {
		b.Fatalf("short of %d, want %d", f.Short, want)
	}
}

// testShortEnds has a reshare and a wipe end what is missing.
func testShortEnds(t *testing.T, b *bench) {
	for i, wipe := range []bool{false, true} {
		epoch := int64(1 + 10*i)
		b.lay(0, epoch, 1)
		first, second := b.request(odd(int(epoch))), b.request(odd(int(epoch)+1))
		first.Epoch, second.Epoch = epoch, epoch
		fa := b.admit(first, sale.Admitted)
		b.settle(settled(first, fa, false))
		sa := b.admit(second, sale.Admitted)
		b.settle(settled(first, fa, true), settled(second, sa, true))
		b.expect(0, 0, 0)
		b.expectShort(1)
		b.seal(0, epoch+1, 10)
		if wipe {
			b.must(b.gate.Wipe(t.Context(), b.sku, 0, epoch+1))
		} else {
			b.must(b.gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, epoch+1, []int64{3}))
			b.expect(0, 3, 0)
		}
		b.expectShort(0)
	}
}
