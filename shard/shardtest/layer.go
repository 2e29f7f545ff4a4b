package shardtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
)

func (b *bench) seal(share sale.Share, epoch int64, limit int) sale.SealedShare {
	b.Helper()
	s, err := b.gate.Seal(b.Context(), b.sku, share, epoch, limit)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) conflict(err error) {
	b.Helper()
	if !errors.Is(err, sale.ErrConflict) {
		b.Fatalf("error %v, want a conflict", err)
	}
}

// testSeal is the light reshare.
func testSeal(t *testing.T, b *bench) {
	const takes = 25
	b.lay(0, 3, 100)
	byID := map[sale.OrderID]sale.AdmitRequest{}
	tokens := map[sale.OrderID]sale.Token{}
	for i := range takes {
		r := b.request(odd(i))
		r.Epoch, r.Quantity = 3, int64(1+i%2)
		tokens[r.Order] = b.admit(r, sale.Admitted).Token
		byID[r.Order] = r
	}
	first := b.seal(0, 7, 10)
	again := b.seal(0, 7, 10) // the reply may have been lost
	for i := range again.Pending {
		again.Pending[i].Age = first.Pending[i].Age
	}
	if fmt.Sprint(first) != fmt.Sprint(again) || first.Gone || first.Epoch != 3 || !first.More || len(first.Pending) != 10 {
		t.Fatalf("sealed %+v, then %+v", first, again)
	}
	b.conflict(b.gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, 7, []int64{50})) // takes are undecided

	var seen, keptUnits int64
	for page := first; ; page = b.seal(0, 7, 10) {
		var kept, dropped []sale.PendingTake
		for i, take := range page.Pending {
			r := byID[take.Order]
			if take.Buyer != r.Buyer || take.Quantity != r.Quantity || take.Token != tokens[take.Order] || take.Age < 0 {
				t.Fatalf("take %+v of %+v", take, r)
			}
			seen++
			if i%2 == 0 {
				kept, keptUnits = append(kept, take), keptUnits+take.Quantity
			} else {
				dropped = append(dropped, take)
			}
		}
		for range 2 {
			b.must(b.gate.Tell(t.Context(), b.sku, 0, 7, kept, dropped))
		}
		if !page.More {
			break
		}
	}
	if seen != takes {
		t.Fatalf("%d of %d takes were told", seen, takes)
	}
	b.expect(0, 100-keptUnits, 0)
	b.must(b.gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, 7, []int64{60}))
	for id, r := range byID {
		r.Epoch = 7
		a, err := b.gate.Admit(t.Context(), r)
		if err != nil || (a.Verdict == sale.Known && a.Token != tokens[id]) {
			t.Fatalf("after the reshare: %+v, %v", a, err)
		}
	}
}

// testFull is the full reshare.
func testFull(t *testing.T, b *bench) {
	ctx := t.Context()
	if s := b.seal(0, 5, 10); !s.Gone || s.Epoch != 0 {
		t.Fatalf("sealing nothing: %+v", s)
	}
	if s := b.seal(0, 5, 10); !s.Gone {
		t.Fatalf("sealing nothing again, after a lost reply: %+v", s)
	}
	if s := b.seal(0, 6, 10); !s.Gone {
		t.Fatalf("the next reshare must know that the share was never laid out: %+v", s)
	}
	var rows []sale.Holding
	for i := range 1200 {
		rows = append(rows, sale.Holding{
			Order: b.id(), Buyer: odd(i % 300), Quantity: int64(1 + i%3), Token: sale.Token{Epoch: 2, Change: int64(i)},
			Closed: i%5 == 0,
		})
	}
	b.must(b.gate.Wipe(ctx, b.sku, 0, 6))
	for range 2 {
		b.must(b.gate.Fill(ctx, b.sku, 0, 6, rows))
	}
	if s := b.seal(0, 8, 10); !s.Gone {
		t.Fatalf("half a reshare looks whole: %+v", s)
	}
	for _, err := range []error{
		b.gate.Wipe(ctx, b.sku, 0, 6), b.gate.Fill(ctx, b.sku, 0, 6, rows), b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 6, []int64{9}),
		b.gate.Tell(ctx, b.sku, 0, 6, []sale.PendingTake{{}}, nil), b.gate.Wipe(ctx, b.sku, 0, 9),
	} {
		b.conflict(err)
	}
	for range 2 {
		b.must(b.gate.Wipe(ctx, b.sku, 0, 8))
	}
	b.must(b.gate.Fill(ctx, b.sku, 0, 8, rows))
	b.must(b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 8, []int64{10}))
	if f := b.figures(0); f.Left != 10 || f.Initial != 10 || f.Pending != 0 || f.Sealed || f.Epoch != 8 {
		t.Fatalf("opened %+v", f)
	}

	units, all := map[string]int64{}, map[uint64]bool{}
	for _, row := range rows {
		all[xxhash.Sum64String(row.Buyer)] = true
		if !row.Closed {
			units[row.Buyer] += row.Quantity
		}
	}
	for i := 0; i < len(rows); i += 37 {
		r := b.request(rows[i].Buyer)
		r.Order, r.Epoch = rows[i].Order, 8
		if a := b.admit(r, sale.Known); a.Token != rows[i].Token || a.Quantity != rows[i].Quantity {
			t.Fatalf("laid out %+v, found %+v", rows[i], a)
		}
		next := b.request(rows[i].Buyer)
		next.Epoch, next.Limit = 8, units[next.Buyer]
		if next.Limit > 0 {
			b.admit(next, sale.AtLimit)
		}
	}
	w, err := b.gate.Winners(ctx, b.sku, []sale.Share{0})
	if err != nil || len(w) != 1 || len(w[0].Hashes) != len(all) || !slices.IsSorted(w[0].Hashes) {
		t.Fatalf("%d winners of %d buyers: %v", len(w[0].Hashes), len(all), err)
	}
	if s := b.seal(0, 9, 10); s.Gone || s.Epoch != 8 {
		t.Fatalf("a share that was opened is whole: %+v", s)
	}
}

func testOpen(t *testing.T, b *bench) {
	ctx := t.Context()
	b.lay(0, 4, 10)
	r := b.request("ann")
	r.Epoch = 4
	b.admit(r, sale.Admitted)
	b.must(b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 4, []int64{10})) // a repetition after a lost reply must not bring the sold unit back
	b.expect(0, 9, 1)
	_, err := b.gate.Seal(ctx, b.sku, 0, 4, 10)
	b.conflict(err)
	_, err = b.gate.Seal(ctx, b.sku, 0, 3, 10)
	b.conflict(err)
	b.conflict(b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 3, []int64{10}))
	b.conflict(b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 5, []int64{10}))
	b.conflict(b.gate.Wipe(ctx, b.sku, 0, 4))
	b.conflict(b.gate.Tell(ctx, b.sku, 0, 4, nil, []sale.PendingTake{{Order: r.Order}}))
	for _, err := range []error{
		b.gate.OpenAll(ctx, b.sku, []sale.Share{1}, 4, []int64{10}), b.gate.Wipe(ctx, b.sku, 1, 4),
		b.gate.Fill(ctx, b.sku, 1, 4, []sale.Holding{{Buyer: "ann", Quantity: 1}}),
	} {
		if err == nil || errors.Is(err, sale.ErrConflict) {
			t.Fatalf("a share that is gone: %v", err)
		}
	}
	if n := b.raw.Exists(ctx, b.key(1, "stock"), b.key(1, "order"), b.key(1, "buyer")).Val(); n != 0 {
		t.Fatalf("a share that is gone got %d keys", n)
	}
}
