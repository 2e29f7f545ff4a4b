package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/shard"
)

// fuse is a breaker that a test opens, and that counts what it hears.
type fuse struct {
	refusing, shut   atomic.Bool // refuses calls; says so beforehand
	calls, sick, due atomic.Int64
	took             atomic.Int64 // the last call, in nanoseconds
}

func (f *fuse) Open() bool { return f.shut.Load() }

func (f *fuse) Allow() (func(error, time.Duration), error) {
	if f.refusing.Load() {
		return nil, sale.ErrBreakerOpen
	}
	f.calls.Add(1)
	f.due.Add(1)
	return func(err error, took time.Duration) {
		defer f.due.Add(-1)
		f.took.Store(int64(took))
		if err != nil {
			f.sick.Add(1)
		}
	}, nil
}

// guarded is a node's way of selling with breakers that a test opens.
type guarded struct {
	*lab
	node         *testNode
	gate         *shard.Gate
	lane, outbox fuse
	backlogged   atomic.Bool
	sales        *service.Sales
	sku          sale.SKU
	promiser     atomic.Pointer[service.Promiser]
}

func (g *guarded) Promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	return (*g.promiser.Load()).Promise(ctx, takes)
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{lab: newLab(t)}
	var err error
	if g.gate, err = shard.Open(t.Context(), g.shard, shard.WithBreaker(func(string) shard.Breaker { return &g.lane })); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.gate.Close() })
	g.node = g.lab.node(g.gate)
	t.Cleanup(g.node.stop)
	if g.sku, err = g.newSKU(t.Context(), g.node, 10, sale.SKU{Limit: 2, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	flags, err := cache.NewFlags(cache.DefaultConfig(), g.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	recent, err := cache.NewRecent(cache.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	g.promise(g.db)
	writer := service.NewWriter(g.config, service.WriterParts{Promiser: g, Gate: g.gate, Relay: noRelay{}, Breaker: &g.outbox})
	t.Cleanup(writer.Close)
	g.sales = service.NewSales(g.config, service.SalesParts{
		Catalogue: g.node.catalogue, Flags: flags, Gate: g.gate, Writer: writer, Orders: g.db, Recent: recent,
		Watcher: g.node.watcher, Backlogged: g.backlogged.Load, Now: g.clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	return g
}

func (g *guarded) promise(p service.Promiser) { g.promiser.Store(&p) }

func (g *guarded) buy(t *testing.T, buyer, key string) sale.Result {
	t.Helper()
	r, err := g.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: g.sku.ID, Buyer: buyer, Key: key, Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (g *guarded) wantBusy(t *testing.T, r sale.Result, reason sale.Reason, unknown bool) {
	t.Helper()
	if r.Code != sale.Busy || r.Reason != reason || r.Unknown != unknown {
		t.Errorf("got %+v, want BUSY, %s, unknown %v", r, reason, unknown)
	}
}

func (g *guarded) wantFigures(t *testing.T, left, pending int64) {
	t.Helper()
	figures, err := g.gate.Peek(t.Context(), g.sku.ID, g.sku.Slots)
	if err != nil {
		t.Fatal(err)
	}
	if f := figures[0]; f.Left != left || f.Pending != pending {
		t.Errorf("%d left and %d pending, want %d and %d", f.Left, f.Pending, left, pending)
	}
}

func TestLaneBreakerRefusesBeforeAnythingIsSent(t *testing.T) {
	g := newGuarded(t)
	g.lane.refusing.Store(true)
	for _, key := range []string{"", "k"} {
		g.wantBusy(t, g.buy(t, "b", key), sale.ReasonBreaker, false)
	}
	g.lane.refusing.Store(false)
	g.wantFigures(t, 10, 0)
	if r := g.buy(t, "b", "k"); r.Code != sale.Accepted {
		t.Errorf("closed again: %+v", r)
	}
	await(t, "every flush is told", func() bool { return g.lane.due.Load() == 0 })
	if g.lane.sick.Load() != 0 {
		t.Errorf("the breaker heard of %d bad flushes", g.lane.sick.Load())
	}
}

// While the breaker says beforehand that it is open, no unit is taken at all.
func TestShutOutboxTakesNothing(t *testing.T) {
	g := newGuarded(t)
	g.outbox.shut.Store(true)
	flushes := g.lane.calls.Load()
	for _, key := range []string{"", "k"} {
		g.wantBusy(t, g.buy(t, "b", key), sale.ReasonBreaker, false)
	}
	if g.lane.calls.Load() != flushes {
		t.Error("the gate was asked for a purchase that cannot be promised")
	}
	g.wantFigures(t, 10, 0)
}

// A promise that the breaker refuses at the last moment leaves the take as any other that was not sent.
func TestRefusedPromisesTakesComeBack(t *testing.T) {
	g := newGuarded(t)
	g.outbox.refusing.Store(true)
	g.wantBusy(t, g.buy(t, "ann", ""), sale.ReasonBreaker, false)
	g.wantFigures(t, 10, 0) // given back at once: the take is this request's alone
	g.wantBusy(t, g.buy(t, "bob", "k"), sale.ReasonBreaker, false)
	g.wantFigures(t, 9, 1) // left to the journal sweeper: another request may be promising it
	if g.outbox.calls.Load() != 0 {
		t.Errorf("%d promises were counted", g.outbox.calls.Load())
	}
	g.outbox.refusing.Store(false)
	if r := g.buy(t, "bob", "k"); r.Code != sale.Accepted {
		t.Errorf("the same key, closed again: %+v", r)
	}
	await(t, "the breaker has heard", func() bool { return g.outbox.calls.Load() == 1 && g.outbox.due.Load() == 0 })
	if g.outbox.sick.Load() != 0 {
		t.Error("a promise that was made counts as bad")
	}
	if r := g.buy(t, "bob", "k"); r.Code != sale.Accepted || !r.Replayed {
		t.Errorf("asked again: %+v", r)
	}
}

// refusesSome decides takes of one buyer as refused and has trouble with all others.
type refusesSome struct{}

func (refusesSome) Promise(_ context.Context, takes []sale.Take) []sale.Decision {
	decisions := make([]sale.Decision, len(takes))
	for i, take := range takes {
		decisions[i] = sale.Decision{Outcome: sale.Undecided, Err: errors.New("connection lost")}
		if take.Buyer == "limited" {
			decisions[i] = sale.Decision{Outcome: sale.OverLimit}
		}
	}
	return decisions
}

func TestOutboxBreakerHearsOfTroubleOnly(t *testing.T) {
	g := newGuarded(t)
	g.promise(refusesSome{})
	if r := g.buy(t, "limited", ""); r.Code != sale.LimitReached {
		t.Errorf("%+v", r)
	}
	await(t, "the breaker has heard", func() bool { return g.outbox.calls.Load() == 1 && g.outbox.due.Load() == 0 })
	if g.outbox.sick.Load() != 0 {
		t.Error("a refusal counts as trouble")
	}
	g.wantBusy(t, g.buy(t, "b", ""), sale.ReasonDependency, true)
	await(t, "the breaker has heard", func() bool { return g.outbox.calls.Load() == 2 && g.outbox.due.Load() == 0 })
	if g.outbox.sick.Load() != 1 {
		t.Error("a lost connection does not count")
	}
}

// decides answers one take after a while.
type decides struct {
	sale.Decision
	after time.Duration
}

func (d decides) Promise(context.Context, []sale.Take) []sale.Decision {
	<-time.After(d.after)
	return []sale.Decision{d.Decision}
}

// A row that somebody sits on is no reason to keep purchases of all SKUs away from the database.
func TestOutboxBreakerBearsLockedRows(t *testing.T) {
	const pause = 5 * time.Millisecond
	locked, lost := fmt.Errorf("sku a: %w", sale.ErrRowLocked), errors.New("connection lost")
	for name, tt := range map[string]struct {
		decision sale.Decision
		well     bool // for the breaker
		timed    bool
	}{
		"its row is locked":     {sale.Decision{Outcome: sale.NotTaken, Err: locked}, true, false},
		"decided":               {sale.Decision{Outcome: sale.OverLimit}, true, true},
		"no connection":         {sale.Decision{Outcome: sale.NotTaken, Err: lost}, false, true},
		"lost while it commits": {sale.Decision{Outcome: sale.Undecided, Err: lost}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.promise(decides{tt.decision, pause})
			g.buy(t, "ann", "")
			await(t, "the breaker has heard", func() bool { return g.outbox.calls.Load() == 1 && g.outbox.due.Load() == 0 })
			if well := g.outbox.sick.Load() == 0; well != tt.well {
				t.Errorf("well is %v", well)
			}
			if took := time.Duration(g.outbox.took.Load()); (took >= pause) != tt.timed || (!tt.timed && took != 0) {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestBacklogRefusesButWinnersGetTheirOrder(t *testing.T) {
	g := newGuarded(t)
	won := g.buy(t, "ann", "k")
	if won.Code != sale.Accepted {
		t.Fatalf("%+v", won)
	}
	g.backlogged.Store(true)
	if r := g.buy(t, "ann", "k"); r.Code != sale.Accepted || !r.Replayed || r.Order.ID != won.Order.ID {
		t.Errorf("a winner asks again: %+v", r)
	}
	g.wantBusy(t, g.buy(t, "bob", "k"), sale.ReasonBacklog, false)
	g.wantBusy(t, g.buy(t, "cid", ""), sale.ReasonBacklog, false)
	g.backlogged.Store(false)
	if r := g.buy(t, "bob", "k"); r.Code != sale.Accepted {
		t.Errorf("%+v", r)
	}
}
