package shardtest

import (
	"errors"
	"testing"

	"stockade/biz/sale"
)

func testDrop(t *testing.T, b *bench) {
	ctx := t.Context()
	keys := func(share sale.Share) int64 {
		t.Helper()
		var n int64
		for _, kind := range []string{"stock", "buyer", "order", "journal"} {
			n += b.raw.Exists(ctx, b.key(share, kind)).Val()
		}
		return n
	}
	b.must(b.gate.Drop(ctx, b.sku, 0, 1)) // nothing there
	for _, share := range []sale.Share{0, 1} {
		b.lay(share, 1, 10)
		r := b.request("ann")
		r.Share = share
		b.admit(r, sale.Admitted)
	}
	b.conflict(b.gate.Drop(ctx, b.sku, 0, 1)) // open
	b.seal(0, 3, 10)
	b.conflict(b.gate.Drop(ctx, b.sku, 0, 2))
	b.conflict(b.gate.Drop(ctx, b.sku, 0, 4))
	if n := keys(0); n != 4 {
		t.Fatalf("%d keys are left of a share that was not dropped", n)
	}
	for range 2 {
		b.must(b.gate.Drop(ctx, b.sku, 0, 3))
	}
	if n := keys(0); n != 0 {
		t.Fatalf("%d keys are left", n)
	}
	if n := keys(1); n != 4 {
		t.Fatalf("%d keys are left of another share", n)
	}
	gone := b.request("bob")
	b.admit(gone, sale.Gone)
	b.credit(gone, 1, false)
	if s := b.seal(0, 5, 10); !s.Gone {
		t.Fatalf("a dropped share is not gone: %+v", s)
	}
	var bad *sale.InputError
	if err := b.gate.Drop(ctx, b.sku, 0, 0); !errors.As(err, &bad) {
		t.Fatalf("epoch 0: %v", err)
	}
}

// testSlotCounts takes a SKU from 32 slots to 3, to 17 and back, the way a reshare does, and looks at what is there after
// each step.
func testSlotCounts(t *testing.T, b *bench) {
	ctx := t.Context()
	laid := 0
	for at, slots := range []int{sale.MaxSlots, 3, 17, 1, sale.MaxSlots} {
		epoch := int64(at + 1)
		order := b.id()
		for _, share := range sale.Shares(max(laid, slots)) {
			page := b.seal(share, epoch, 10)
			b.must(b.gate.Tell(ctx, b.sku, share, epoch, page.Pending, nil))
			b.must(b.gate.Wipe(ctx, b.sku, share, epoch))
			if share != sale.Reserve && int(share) >= slots {
				b.must(b.gate.Drop(ctx, b.sku, share, epoch))
				continue
			}
			b.must(b.gate.Fill(ctx, b.sku, share, epoch, []sale.Holding{{
				Order: order, Buyer: "ann", Quantity: 1, Token: sale.Token{Epoch: 1, Change: 1},
			}}))
			b.must(b.gate.OpenAll(ctx, b.sku, []sale.Share{share}, epoch, []int64{5}))
			r := b.request("bob")
			r.Share, r.Epoch = share, epoch
			b.admit(r, sale.Admitted)
		}
		laid = slots
		all, err := b.gate.Peek(ctx, b.sku, sale.MaxSlots)
		b.must(err)
		for _, f := range all {
			there := f.Share == sale.Reserve || int(f.Share) < slots
			if f.Gone == there || (there && (f.Epoch != epoch || f.Left != 4 || f.Pending != 1 || f.Sealed)) {
				t.Fatalf("with %d slots share %s is %+v", slots, f.Share, f)
			}
			if there {
				r := sale.AdmitRequest{
					SKU: b.sku, Share: f.Share, Epoch: epoch, Order: order, Buyer: "ann", Quantity: 1, Limit: 1,
				}
				b.admit(r, sale.Known)
			}
		}
	}
}
