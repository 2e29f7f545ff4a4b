package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// accepted is a SKU with an acknowledged take that nobody has promised.
type accepted struct {
	*lab
	n    *testNode
	gate realGate
	sku  sale.SKU
	take sale.Take
}

// acceptOne admits one take of one unit, of 10, into slot 0.
func acceptOne(t *testing.T) accepted {
	t.Helper()
	l, n, sku, req := oneShare(t)
	a := accepted{lab: l, n: n, gate: l.gate(t), sku: sku}
	a.take = a.admit(t, 0, req.Buyer)
	return a
}

// admit has a share take one unit for a buyer, acknowledged.
func (a accepted) admit(t *testing.T, share sale.Share, buyer string) sale.Take {
	t.Helper()
	epoch := a.listing(t).Ledger.LiveEpoch
	id := sale.DeriveOrderID(a.sku.ID, buyer, "k")
	got, err := a.gate.Admit(t.Context(), sale.AdmitRequest{
		SKU: a.sku.ID, Share: share, Epoch: epoch, Order: id, Buyer: buyer, Quantity: 1, Limit: a.sku.Limit, Acknowledge: true,
	})
	if err != nil || got.Verdict != sale.Admitted {
		t.Fatalf("admitted: %+v, %v", got, err)
	}
	return sale.Take{
		Order: id, SKU: a.sku.ID, Buyer: buyer, Quantity: 1, Share: share, Token: got.Token,
		Epoch: epoch, Mode: sale.ModeRedis, Limit: a.sku.Limit, Window: a.sku.PaymentWindow,
	}
}

func (a accepted) listing(t *testing.T) sale.Listing {
	t.Helper()
	l, err := a.db.Listing(t.Context(), a.sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sellOut promises everything past the gate, so that the ledger is short of what the shares admit.
func (a accepted) sellOut(t *testing.T) {
	t.Helper()
	l := a.listing(t)
	other := a.take
	other.Order, other.Buyer, other.Share = sale.DeriveOrderID(a.sku.ID, "all", "k"), "all", sale.Reserve
	other.Quantity, other.Limit = l.Ledger.Available(), l.Ledger.Available()
	if d := a.db.Promise(t.Context(), []sale.Take{other}); d[0].Outcome != sale.Promised {
		t.Fatalf("%+v", d)
	}
}

// close writes the take's order CLOSED, with the token of the take, as if it had been promised.
func (a accepted) close(t *testing.T) {
	t.Helper()
	if closed, _, err := a.db.CloseUnpromised(t.Context(), []sale.Take{a.take}); err != nil || len(closed) != 1 {
		t.Fatal(closed, err)
	}
}

// wantShare expects the figures of a share.
func (a accepted) wantShare(t *testing.T, share sale.Share, left, pending int64) {
	t.Helper()
	figures, err := a.gate.Peek(t.Context(), a.sku.ID, a.sku.Slots)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.Share == share && (f.Left != left || f.Pending != pending || f.Short != 0 || f.Sealed) {
			t.Errorf("share %+v, want %d left and %d undecided", f, left, pending)
		}
	}
}

func (a accepted) wantOrder(t *testing.T, take sale.Take, state sale.OrderState) {
	t.Helper()
	if o, err := a.db.Order(t.Context(), take.Buyer, take.Order); err != nil || o.State != state {
		t.Errorf("%+v, %v, want %v", o, err, state)
	}
}

// An order that was closed without a promise owes no credit: the sweep has to give the unit back, whether it finds the
// row at first or only when it promises the take.
func TestASweepDropsAcknowledgedTakesWithAClosedOrder(t *testing.T) {
	for _, when := range []sale.Point{"", sale.JournalDecided} {
		t.Run("closed at "+string(when), func(t *testing.T) {
			a := acceptOne(t)
			closed := false
			once := func() {
				if !closed {
					a.close(t)
				}
				closed = true
			}
			if when == "" {
				once()
			}
			sweeper := service.NewJournalSweeper(a.config, service.JournalParts{
				Ledgers: a.db, Promiser: a.db, Gate: a.gate, Watcher: a.n.watcher, Faults: between{when, once},
				Log: slog.New(slog.DiscardHandler),
			})
			if n, err := sweeper.Sweep(t.Context(), a.listing(t), 0); n != 1 || err != nil || !closed {
				t.Fatalf("%d takes settled, %v, want 1", n, err)
			}
			a.wantOrder(t, a.take, sale.OrderClosed)
			a.wantShare(t, 0, 10, 0)
		})
	}
}

// late is the promise in the background of an acknowledged take, which comes when all is over.
func (a accepted) late(t *testing.T) {
	t.Helper()
	var outcomes []sale.Outcome
	writer := service.NewWriter(a.config, service.WriterParts{
		Promiser: promises(func(ctx context.Context, takes []sale.Take) []sale.Decision {
			decisions := a.db.Promise(ctx, takes)
			for _, d := range decisions {
				outcomes = append(outcomes, d.Outcome)
			}
			return decisions
		}),
		Gate: faultyGate{a.gate, &faults{}}, Relay: noRelay{},
	})
	writer.Later(a.take)
	writer.Close()
	if len(outcomes) != 1 {
		t.Fatalf("late promises %v, want one", outcomes)
	}
}

// sickGate has shares that do not answer.
type sickGate struct {
	realGate
	peeks bool // Peek works all the same
	sick  sale.Share

	mu        sync.Mutex
	unbounded int // looks into a share that nothing would ever end
}

var errSick = errors.New("the master does not answer")

func (g *sickGate) Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error) {
	if g.peeks {
		return g.realGate.Peek(ctx, sku, slots)
	}
	return nil, errInjected
}

func (g *sickGate) Overdue(
	ctx context.Context, sku string, share sale.Share, age time.Duration, limit int,
) ([]sale.PendingTake, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		g.mu.Lock()
		g.unbounded++
		g.mu.Unlock()
	}
	if share == g.sick {
		return nil, errSick
	}
	return g.realGate.Overdue(ctx, sku, share, age, limit)
}

// One share that does not answer keeps no other share's takes undecided.
func TestASickShareIsSweptAlone(t *testing.T) {
	for _, peeks := range []bool{true, false} {
		t.Run(fmt.Sprint("peek works: ", peeks), func(t *testing.T) {
			l := newLab(t)
			n := l.node(l.gate(t))
			t.Cleanup(n.stop)
			sku, err := l.newSKU(t.Context(), n, 40, sale.SKU{Limit: 2, Slots: 3, ReservePct: 25})
			if err != nil {
				t.Fatal(err)
			}
			a := accepted{lab: l, n: n, gate: l.gate(t), sku: sku}
			shares := sale.Shares(sku.Slots)
			takes := make([]sale.Take, len(shares))
			for i, share := range shares {
				takes[i] = a.admit(t, share, fmt.Sprint("b", i))
			}
			gate := &sickGate{realGate: a.gate, peeks: peeks, sick: shares[0]}
			sweeper := service.NewJournalSweeper(a.config, service.JournalParts{
				Ledgers: a.db, Promiser: a.db, Gate: gate, Watcher: n.watcher, Log: slog.New(slog.DiscardHandler),
			})
			settled, err := sweeper.Sweep(t.Context(), a.listing(t), 0)
			if settled != len(shares)-1 || !errors.Is(err, errSick) || errors.Is(err, errInjected) == peeks {
				t.Errorf("%d takes of %d settled, %v", settled, len(takes), err)
			}
			if gate.unbounded != 0 {
				t.Errorf("%d looks into shares had no time limit", gate.unbounded)
			}
			for i, share := range shares {
				if i > 0 {
					a.wantShare(t, share, 9, 0)
					a.wantOrder(t, takes[i], sale.OrderQueued)
				}
			}
			a.wantShare(t, shares[0], 9, 1)
		})
	}
}

// unwritable is a buyer whose data the database refuses.
const unwritable = "bad"

// particular is a store that cannot take the unwritable buyer: the name is too long for its column.
type particular struct{ realStore }

func (particular) spoilt(takes []sale.Take) []sale.Take {
	takes = slices.Clone(takes)
	for i := range takes {
		if takes[i].Buyer == unwritable {
			takes[i].Buyer = strings.Repeat("x", 200)
		}
	}
	return takes
}

func (s particular) Promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	return s.realStore.Promise(ctx, s.spoilt(takes))
}

func (s particular) Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error) {
	return s.realStore.Carry(ctx, sku, epoch, s.spoilt(takes))
}

func (s particular) CloseUnpromised(
	ctx context.Context, takes []sale.Take,
) (closed []sale.OrderID, refused map[sale.OrderID]error, err error) {
	return s.realStore.CloseUnpromised(ctx, s.spoilt(takes))
}

// An accepted order that the database refuses can never be written: it keeps neither its share nor its neighbours waiting.
func TestASweepDropsWhatTheDatabaseRefuses(t *testing.T) {
	a := acceptOne(t)
	a.sellOut(t)
	bad := a.admit(t, 0, unwritable)
	a.wantShare(t, 0, 8, 2)
	db := particular{a.db}
	sweeper := service.NewJournalSweeper(a.config, service.JournalParts{
		Ledgers: db, Promiser: db, Gate: a.gate, Watcher: a.n.watcher, Log: slog.New(slog.DiscardHandler),
	})
	if n, err := sweeper.Sweep(t.Context(), a.listing(t), 0); n != 2 || err != nil {
		t.Fatalf("%d takes settled, %v, want both", n, err)
	}
	a.wantShare(t, 0, 10, 0)
	a.wantOrder(t, a.take, sale.OrderClosed)
	if o, err := a.db.Order(t.Context(), bad.Buyer, bad.Order); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("%+v, %v", o, err)
	}
	if n := sweeper.Compensated(); n != 1 {
		t.Errorf("%d orders compensated, want 1", n)
	}
}

// A take that did not fit has been promised by somebody before it could be closed: its unit stays taken.
func TestASweepLeavesARowMadeMeanwhileToTheNext(t *testing.T) {
	a := acceptOne(t)
	sweeper := service.NewJournalSweeper(a.config, service.JournalParts{
		Ledgers: a.db, Gate: a.gate, Watcher: a.n.watcher, Log: slog.New(slog.DiscardHandler),
		Promiser: promises(func(ctx context.Context, takes []sale.Take) []sale.Decision {
			if d := a.db.Promise(ctx, takes); len(d) != 1 || d[0].Outcome != sale.Promised {
				t.Errorf("%+v", d)
			}
			return []sale.Decision{{Outcome: sale.Short}}
		}),
	})
	for i, pending := range []int64{1, 0} {
		if n, err := sweeper.Sweep(t.Context(), a.listing(t), 0); n != i || err != nil {
			t.Fatalf("sweep %d: %d takes settled, %v", i, n, err)
		}
		a.wantShare(t, 0, 9, pending)
	}
	a.wantOrder(t, a.take, sale.OrderQueued)
	if n := sweeper.Compensated(); n != 0 {
		t.Errorf("%d orders compensated, want none", n)
	}
}
