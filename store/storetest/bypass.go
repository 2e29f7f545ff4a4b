package storetest

import (
	"errors"
	"slices"
	"testing"

	"stockade/biz/sale"
)

func bypass(t *testing.T, s Subject) {
	ctx := deadline(t)
	must(t, s.DB.CreateSKU(ctx, validSKU("draft"), 10))
	var state *sale.StateError
	if err := s.DB.BypassGate(ctx, "draft"); !errors.As(err, &state) || state.State != sale.Draft {
		t.Fatalf("a draft without the gate: %v", err)
	}
	if err := s.DB.BypassGate(ctx, "none"); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("no SKU: %v", err)
	}
	newSKU(t, s.DB, "a", 100, 10)
	wantOutcomes(t, promise(t, s.DB, take("a", "u", 1, 10)), sale.Promised)

	want := func(epoch int64, mode sale.Mode, live bool) {
		t.Helper()
		l, err := s.DB.Listing(ctx, "a")
		must(t, err)
		if l.Ledger.Epoch != epoch || l.Ledger.Mode != mode || l.Ledger.Live() != live || l.Ledger.LaidEpoch != 1 {
			t.Fatalf("ledger %+v, want epoch %d, mode %s, live %v", l.Ledger, epoch, mode, live)
		}
		if live && l.Ledger.State != sale.Steady {
			t.Fatalf("live and %s", l.Ledger.State)
		}
	}
	for range 2 { // the second finds it done
		must(t, s.DB.BypassGate(ctx, "a"))
		want(2, sale.ModeMySQL, true)
	}
	admitted, gated, direct := take("a", "u", 1, 10), take("a", "u", 1, 10), take("a", "u", 1, 10)
	gated.Epoch, direct.Epoch, direct.Mode = 2, 2, sale.ModeMySQL
	wantOutcomes(t, promise(t, s.DB, admitted, gated, direct), sale.Fenced, sale.Fenced, sale.Promised)

	// On the way back, and away again before it is done.
	snap, err := s.DB.BeginReshare(ctx, "a", 2, sale.LedgerChange{Mode: sale.ModeRedis})
	must(t, err)
	must(t, snap.Close())
	want(3, sale.ModeRedis, false)
	must(t, s.DB.BypassGate(ctx, "a"))
	want(4, sale.ModeMySQL, true)
	if err := s.DB.FinishReshare(ctx, "a", 3, true, "gate"); !errors.Is(err, sale.ErrConflict) {
		t.Fatalf("the overtaken reshare finished: %v", err)
	}
	// A reshare that keeps the mode has to be overtaken as well.
	snap, err = s.DB.BeginReshare(ctx, "a", 4, sale.LedgerChange{})
	must(t, err)
	must(t, snap.Close())
	want(5, sale.ModeMySQL, false)
	must(t, s.DB.BypassGate(ctx, "a"))
	want(6, sale.ModeMySQL, true)
	wantBooks(t, s.DB, "a")
}

func buyersOf(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	newSKU(t, s.DB, "b", 100, 10)
	var takes []sale.Take
	for _, b := range []string{"b", "a", "a ", "A", "é", "b", "a", "closed"} {
		takes = append(takes, take("a", b, 1, 10))
	}
	ds := promise(t, s.DB, append(takes, take("b", "elsewhere", 1, 10))...)
	closeOrder(t, s, ds[7].Order, "CANCELLED")
	closeOrder(t, s, ds[0].Order, "CANCELLED") // b holds another one
	for _, limit := range []int{1, 2, 100} {
		var got []string
		after := ""
		for {
			page, err := s.DB.BuyersOf(ctx, "a", after, limit)
			must(t, err)
			if len(page) == 0 {
				break
			}
			if len(page) > limit {
				t.Fatalf("%d buyers in a page of %d", len(page), limit)
			}
			got = append(got, page...)
			after = page[len(page)-1]
		}
		if want := []string{"A", "a", "a ", "b", "closed", "é"}; !slices.Equal(got, want) {
			t.Errorf("buyers %q, want %q", got, want)
		}
	}
}
