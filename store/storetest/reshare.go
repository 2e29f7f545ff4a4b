package storetest

import (
	"errors"
	"testing"

	"stockade/biz/sale"
)

func reshareAdjusts(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10, 10)
	wantOutcomes(t, promise(t, s.DB, take("a", "u1", 6, 10)), sale.Promised)

	if _, err := s.DB.BeginReshare(ctx, "a", 0, sale.LedgerChange{}); !errors.Is(err, sale.ErrConflict) {
		t.Fatalf("begin at an old epoch: %v", err)
	}
	if _, err := s.DB.BeginReshare(ctx, "none", 0, sale.LedgerChange{}); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("begin for no SKU: %v", err)
	}
	for _, add := range []int64{-5, sale.MaxTotal, -1 << 63, 1<<63 - 1} {
		var input *sale.InputError
		if _, err := s.DB.BeginReshare(ctx, "a", 1, sale.LedgerChange{AddTotal: add}); !errors.As(err, &input) || input.Field != "total" {
			t.Fatalf("total %+d: %v", add, err)
		}
	}
	l, err := s.DB.Listing(ctx, "a")
	must(t, err)
	if l.Ledger.Epoch != 1 || l.Ledger.Total != 10 || !l.Ledger.Live() || l.Ledger.State != sale.Steady {
		t.Fatalf("refused reshares left %+v", l.Ledger)
	}
	if e := reshare(t, s.DB, "a", 1, -4); e != 2 {
		t.Fatalf("the epoch is %d", e)
	}
	more := take("a", "u2", 1, 10)
	more.Epoch = 2
	wantOutcomes(t, promise(t, s.DB, more), sale.Short)
	reshare(t, s.DB, "a", 2, 1)
	more.Epoch = 3
	wantOutcomes(t, promise(t, s.DB, more), sale.Promised)
	if b := wantBooks(t, s.DB, "a"); b.Total != 7 || b.Promised != 7 {
		t.Fatalf("books %+v", b)
	}
}

// Of reshares that saw the same epoch one begins, and only its change of the total counts.
func reshareBeginsOnce(t *testing.T, s Subject) {
	const rounds, rivals = 5, 4
	newSKU(t, s.DB, "a", 10, 10)
	ctx := deadline(t)
	for epoch := int64(1); epoch <= rounds; epoch++ {
		errs := make([]error, rivals)
		together(rivals, func(i int) {
			snap, err := s.DB.BeginReshare(ctx, "a", epoch, sale.LedgerChange{AddTotal: 1})
			if err == nil {
				err = snap.Close()
			} else if errors.Is(err, sale.ErrConflict) {
				errs[i] = err
				return
			}
			if err != nil {
				t.Error(err)
			}
		})
		began := 0
		for _, err := range errs {
			if err == nil {
				began++
			}
		}
		l, err := s.DB.Listing(ctx, "a")
		must(t, err)
		if began != 1 || l.Ledger.Epoch != epoch+1 || l.Ledger.Total != 10+epoch {
			t.Fatalf("%d reshares began at epoch %d: %+v", began, epoch, l.Ledger)
		}
	}
}

func reshareFinishes(t *testing.T, s Subject) {
	ctx := deadline(t)
	must(t, s.DB.CreateSKU(ctx, validSKU("a"), 10))
	first, err := s.DB.BeginReshare(ctx, "a", 0, sale.LedgerChange{})
	must(t, err)
	defer func() { must(t, first.Close()) }()
	l, err := s.DB.Listing(ctx, "a")
	must(t, err)
	if l.Ledger.State != sale.Resharing || l.Ledger.Epoch != 1 || l.Ledger.LiveEpoch != 0 || l.State != sale.Draft ||
		l.Ledger.ProgressAt.IsZero() || l.Ledger.Live() {
		t.Fatalf("begun: %+v", l)
	}
	if got := first.Listing(); got != l {
		t.Fatalf("the snapshot tells %+v, the store %+v", got, l)
	}
	wantOutcomes(t, promise(t, s.DB, take("a", "u1", 1, 2)), sale.Fenced)
	must(t, s.DB.ReshareProgress(ctx, "a", 1))

	second, err := s.DB.BeginReshare(ctx, "a", 1, sale.LedgerChange{})
	must(t, err)
	must(t, second.Close())
	for what, err := range map[string]error{
		"progress": s.DB.ReshareProgress(ctx, "a", 1),
		"finish":   s.DB.FinishReshare(ctx, "a", 1, true, "old"),
	} {
		if !errors.Is(err, sale.ErrConflict) {
			t.Errorf("%s of an overtaken reshare: %v", what, err)
		}
	}
	must(t, s.DB.FinishReshare(ctx, "a", 2, true, "gate-7"))
	must(t, s.DB.FinishReshare(ctx, "a", 2, true, "gate-7"))
	l, err = s.DB.Listing(ctx, "a")
	must(t, err)
	if l.State != sale.Loaded || !l.Ledger.Live() || l.Ledger.LaidEpoch != 2 || l.Ledger.LaidGate != "gate-7" ||
		l.Ledger.State != sale.Steady {
		t.Fatalf("finished: %+v", l)
	}
	must(t, s.DB.SetState(ctx, "a", []sale.SKUState{sale.Loaded}, sale.Open))
	snap, err := s.DB.BeginReshare(ctx, "a", 2, sale.LedgerChange{})
	must(t, err)
	must(t, snap.Close())
	must(t, s.DB.FinishReshare(ctx, "a", 3, false, "ignored"))
	l, err = s.DB.Listing(ctx, "a")
	must(t, err)
	if l.State != sale.Open || l.Ledger.LiveEpoch != 3 || l.Ledger.LaidEpoch != 2 || l.Ledger.LaidGate != "gate-7" {
		t.Fatalf("after a light reshare: %+v", l)
	}
}

func snapshotPages(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 1000, 10)
	newSKU(t, s.DB, "b", 1000, 10)
	want := map[sale.OrderID]sale.Holding{}
	for i := range 25 {
		k := take("a", buyer(i), 1+int64(i%3), 10)
		k.Share = sale.Share(i%5 - 1)
		d := promise(t, s.DB, k, take("b", buyer(i), 1, 10))
		wantOutcomes(t, d, sale.Promised, sale.Promised)
		h := sale.Holding{Order: k.Order, Buyer: k.Buyer, Quantity: k.Quantity, Share: k.Share, Token: k.Token}
		if i%4 == 0 {
			closeOrder(t, s, d[0].Order, "CANCELLED")
			h.Closed = true
		}
		want[k.Order] = h
	}
	snap, err := s.DB.BeginReshare(ctx, "a", 1, sale.LedgerChange{})
	must(t, err)
	defer func() { must(t, snap.Close()) }()
	must(t, s.DB.FinishReshare(ctx, "a", 2, true, ""))
	later := take("a", "late", 1, 10)
	later.Epoch = 2
	wantOutcomes(t, promise(t, s.DB, later), sale.Promised)

	got := map[sale.OrderID]sale.Holding{}
	var ids []sale.OrderID
	after := int64(0)
	for pages := 0; ; pages++ {
		page, err := snap.Holdings(ctx, after, 10)
		must(t, err)
		if len(page) == 0 {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		for _, h := range page {
			if h.Seq <= after {
				t.Fatalf("seq %d after %d", h.Seq, after)
			}
			after, h.Seq = h.Seq, 0
			got[h.Order] = h
			ids = append(ids, h.Order)
		}
	}
	sameHoldings(t, got, want)
	found, err := snap.Decided(ctx, append(ids, newID(), later.Order))
	must(t, err)
	for id, h := range found {
		h.Seq = 0
		found[id] = h
	}
	sameHoldings(t, found, want)
}

func sameHoldings(t *testing.T, got, want map[sale.OrderID]sale.Holding) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d holdings, want %d", len(got), len(want))
	}
	for id, w := range want {
		if got[id] != w {
			t.Errorf("holding %+v, want %+v", got[id], w)
		}
	}
}
