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

	b.admit(b.request("bob"), sale.Admitted)
	if a := b.admit(r, sale.Empty); !a.Doubtful {
		t.Fatalf("refusal of a doubtful id %+v", a)
	}
	r.Limit = 1
	if a := b.admit(r, sale.AtLimit); !a.Doubtful {
		t.Fatalf("refusal of a doubtful id %+v", a)
	}
	r.Limit, r.Quantity = 2, 2

	// It was promised after all: its units are taken again as far as they are there, and its buyer has them.
	b.settle(settled(r, second, true))
	b.expect(0, 1, 1)
	if a := b.admit(r, sale.Known); a.Quantity != 2 {
		t.Fatalf("retaken %+v", a)
	}
	b.admit(b.request("ann"), sale.AtLimit)
	before := b.dump(0)
	b.settle(settled(r, second, true), settled(r, second, false))
	if after := b.dump(0); after != before {
		t.Fatalf("telling it twice changed the share:\n%s\n%s", before, after)
	}
}
