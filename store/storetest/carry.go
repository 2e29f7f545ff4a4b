package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"stockade/biz/sale"
)

// begin starts a reshare and leaves it under way; its epoch comes back.
func begin(t testing.TB, s Subject, sku string, seen int64, change sale.LedgerChange) int64 {
	t.Helper()
	snap, err := s.DB.BeginReshare(t.Context(), sku, seen, change)
	must(t, err)
	must(t, snap.Close())
	return snap.Listing().Ledger.Epoch
}

func carry(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 7, 3)
	first := take("a", "u1", 2, 3)
	wantOutcomes(t, promise(t, s.DB, first), sale.Promised)
	elsewhere := first
	elsewhere.Share = sale.Reserve
	takes := []sale.Take{
		first,                 // promised after all
		elsewhere,             // likewise, from another share
		take("a", "u1", 2, 3), // over the limit with what u1 holds
		take("a", "u2", 3, 3),
		take("a", "u3", 3, 3), // short: two units are left
		take("a", "u4", 1, 3),
		take("a", strings.Repeat("x", 200), 1, 3),
	}
	takes[3].Epoch, takes[5].Mode = 0, sale.ModeMySQL // what they were admitted under does not matter
	for _, live := range [][]sale.Take{takes, {take("a", "u5", 1, 3)}} {
		if _, err := s.DB.Carry(ctx, "a", 1, live); !errors.Is(err, sale.ErrConflict) {
			t.Fatalf("carried under a live epoch: %v", err)
		}
	}
	epoch := begin(t, s, "a", 1, sale.LedgerChange{})
	for _, old := range [][]sale.Take{takes, {take("a", "u5", 1, 3)}} {
		if _, err := s.DB.Carry(ctx, "a", epoch-1, old); !errors.Is(err, sale.ErrConflict) {
			t.Fatalf("carried for a reshare that was overtaken: %v", err)
		}
	}
	wantOutcomes(t, promise(t, s.DB, takes[5]), sale.Fenced)
	s.Faults.breaks(sale.PromiseWritten)
	if _, err := s.DB.Carry(ctx, "a", epoch, takes[3:4]); !errors.Is(err, errBroken) {
		t.Fatalf("carried over a fault: %v", err)
	}
	s.Faults.breaks("")
	got, err := s.DB.Carry(ctx, "a", epoch, takes)
	must(t, err)
	wantOutcomes(t, got, sale.Found, sale.FoundElse, sale.OverLimit, sale.Promised, sale.Short, sale.Promised, sale.Rejected)
	if got[2].Live != 2 || got[4].Available != 2 {
		t.Fatalf("decisions tell %+v", got)
	}
	got, err = s.DB.Carry(ctx, "a", epoch, takes)
	must(t, err)
	wantOutcomes(t, got, sale.Found, sale.FoundElse, sale.Short, sale.Found, sale.Short, sale.Found, sale.Rejected)
	if got, err := s.DB.Carry(ctx, "a", epoch, nil); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	if _, err := s.DB.Carry(ctx, "a", epoch, []sale.Take{take("b", "u", 1, 1)}); err == nil {
		t.Fatal("another SKU's take was carried")
	}
	wantSettlement(t, s, "a")
	wantBooks(t, s.DB, "a")

	// An order closed while the reshare runs is the reshare's: its restock carries the new epoch.
	snap, err := s.DB.Decided(ctx, "a", []sale.OrderID{takes[3].Order})
	must(t, err)
	if h := snap[takes[3].Order]; h.Token != takes[3].Token || h.Share != takes[3].Share {
		t.Fatalf("carried as %+v", h)
	}
	closed := change(t, s, compensation(sale.Order{ID: takes[3].Order}))
	if r := closed[0].Restock; r == nil || r.Epoch != epoch || r.Taken != takes[3].Token.Epoch || r.Quantity != 3 {
		t.Fatalf("restock %+v", r)
	}
	must(t, s.DB.FinishReshare(ctx, "a", epoch, true, ""))
	if _, err := s.DB.Carry(ctx, "a", epoch, takes); !errors.Is(err, sale.ErrConflict) {
		t.Fatalf("carried for a reshare that has finished: %v", err)
	}
}

func closeUnpromised(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 1, 3)
	kept := take("a", "u0", 1, 3)
	wantOutcomes(t, promise(t, s.DB, kept), sale.Promised)
	takes := []sale.Take{
		take("a", "u2", 1, 3), kept, take("a", "u1", 2, 3), take("a", strings.Repeat("x", 200), 1, 3), take("a", "u3", 0, 3),
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	closed, refused, err := s.DB.CloseUnpromised(gone, takes[:4])
	if !errors.Is(err, context.Canceled) || len(closed) > 0 || len(refused) > 0 {
		t.Fatalf("without a database: closed %v, refused %v, %v", closed, refused, err)
	}
	for range 2 { // neither bad data nor a row that is there keeps the others out
		closed, refused, err := s.DB.CloseUnpromised(ctx, takes)
		must(t, err)
		if want := []sale.OrderID{takes[0].Order, takes[2].Order}; !equalIDs(closed, want) {
			t.Fatalf("closed %v, want %v", closed, want)
		}
		if len(refused) != 2 || refused[takes[3].Order] == nil || refused[takes[4].Order] == nil {
			t.Fatalf("refused %v, want the last two", refused)
		}
	}
	for i, want := range map[int]sale.OrderState{0: sale.OrderClosed, 1: sale.OrderQueued, 2: sale.OrderClosed} {
		o, err := s.DB.Order(ctx, takes[i].Buyer, takes[i].Order)
		must(t, err)
		if o.State != want || o.Quantity != takes[i].Quantity || (want == sale.OrderClosed) != (o.Reason == sale.ReasonCompensated) ||
			!o.ExpiresAt.Equal(o.AcceptedAt.Add(takes[i].Window)) {
			t.Errorf("order %d: %+v", i, o)
		}
	}
	var told []sale.OrderID
	for _, n := range notes(t, s) {
		for _, o := range n.Orders {
			if n.Topic != sale.TopicClosed || o.State != sale.OrderClosed {
				t.Errorf("notice %+v", n)
			}
			told = append(told, o.ID)
		}
	}
	if want := []sale.OrderID{takes[0].Order, takes[2].Order}; !equalIDs(told, want) {
		t.Fatalf("told of %v, want %v", told, want)
	}
	// Nobody owes anything for them: no units, no restock, no message.
	got := change(t, s, compensation(sale.Order{ID: takes[0].Order}), cancel(sale.Order{ID: takes[2].Order, Buyer: "u1"}),
		pay(sale.Order{ID: takes[0].Order}, "p"))
	wantSettled(t, got, sale.Already, sale.Already, sale.RefundRequired)
	if n := count(t, s, "SELECT COUNT(*) FROM restock"); n != 0 {
		t.Fatalf("%d restocks", n)
	}
	wantDepth(t, s, 1, 0)
	wantSettlement(t, s, "a")
	wantOutcomes(t, promise(t, s.DB, takes[0]), sale.Found)
}

func equalIDs(a, b []sale.OrderID) bool {
	x, y := sorted(a), sorted(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}
