package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/shard"
)

// wires counts what a node asks its servers, and can be cut.
type wires struct {
	mu    sync.Mutex
	cut   bool
	asked map[string]int
}

func (w *wires) ask(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[what]++
	if w.cut {
		return errDown
	}
	return nil
}

func (w *wires) cutOff(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// since forgets what was asked and tells what was asked before.
func (w *wires) since() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = map[string]int{}
	return asked
}

// wiredGate is the gate behind wires.
type wiredGate struct {
	*shard.Gate
	w *wires
}

func (g wiredGate) Admit(ctx context.Context, r sale.AdmitRequest) (sale.Admission, error) {
	if err := g.w.ask("admit " + r.Share.String()); err != nil {
		return sale.Admission{}, err
	}
	return g.Gate.Admit(ctx, r)
}

func (g wiredGate) Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error) {
	if err := g.w.ask("peek"); err != nil {
		return nil, err
	}
	return g.Gate.Peek(ctx, sku, slots)
}

func (g wiredGate) Held(ctx context.Context, sku string, share sale.Share, id sale.OrderID) (sale.PendingTake, error) {
	if err := g.w.ask("held"); err != nil {
		return sale.PendingTake{}, err
	}
	return g.Gate.Held(ctx, sku, share, id)
}

// switched is a node whose servers are behind wires and whose toggles a test sets, with a SKU of two slots and a reserve.
type switched struct {
	*testNode // what is not behind wires, to prepare and to look after
	t         *testing.T
	lab       *lab
	wires     *wires
	through   *service.Sales // the node's purchases
	watching  *service.Watcher
	memory    *cache.Flags
	results   service.Results
	sku       sale.SKU
}

func newSwitched(t *testing.T, total int64) *switched {
	t.Helper()
	l := newLab(t)
	gate := l.gate(t)
	s := &switched{t: t, lab: l, testNode: l.node(gate), wires: &wires{asked: map[string]int{}}}
	t.Cleanup(s.stop)
	var err error
	if s.sku, err = l.newSKU(t.Context(), s.testNode, total, sale.SKU{Limit: 2, Slots: 2, ReservePct: 50}); err != nil {
		t.Fatal(err)
	}
	cfg := cache.DefaultConfig()
	listings, err := cache.NewCatalogue(cfg, func(ctx context.Context, sku string) (sale.Listing, error) {
		if err := s.wires.ask("listing"); err != nil {
			return sale.Listing{}, err
		}
		return l.db.Listing(ctx, sku)
	}, l.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listings.Close)
	if s.memory, err = cache.NewFlags(cfg, l.clock.Now); err != nil {
		t.Fatal(err)
	}
	log, wired := slog.New(slog.DiscardHandler), wiredGate{gate, s.wires}
	s.watching = service.NewWatcher(l.config, service.WatcherParts{
		Gate: wired, Ledgers: l.db, Flags: s.memory, Catalogue: listings, Log: log,
	})
	s.through = service.NewSales(l.config, service.SalesParts{
		Catalogue: listings, Flags: s.memory, Gate: wired, Writer: s.writer, Orders: s, Recent: nobody{}, Watcher: s.watching,
		Toggles: s.toggles, Results: &s.results, Now: l.clock.Now, Log: log,
	})
	return s
}

// nobody remembers no winners.
type nobody struct{}

func (nobody) Add(sale.OrderID) {}

// Order and OrdersOf make s the service.Orders of its node.
func (s *switched) Order(ctx context.Context, buyer string, id sale.OrderID) (sale.Order, error) {
	if err := s.wires.ask("order"); err != nil {
		return sale.Order{}, err
	}
	return s.lab.db.Order(ctx, buyer, id)
}

func (s *switched) OrdersOf(ctx context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error) {
	return s.lab.db.OrdersOf(ctx, buyer, after, limit)
}

func (s *switched) buy(buyer, key string) sale.Result {
	s.t.Helper()
	r, err := s.through.Purchase(s.t.Context(), service.PurchaseRequest{SKU: s.sku.ID, Buyer: buyer, Key: key, Quantity: 1})
	if err != nil {
		s.t.Fatalf("%s: %v", buyer, err)
	}
	return r
}

func (s *switched) want(when string, r sale.Result, code sale.Code, reason sale.Reason) {
	s.t.Helper()
	if r.Code != code || r.Reason != reason {
		s.t.Errorf("%s: %s %s, want %s %s", when, r.Code, r.Reason, code, reason)
	}
}

// atHome are names of buyers whose home is a slot.
func (s *switched) atHome(slot sale.Share, count int) []string {
	var names []string
	for i := 0; len(names) < count; i++ {
		if name := fmt.Sprint("buyer-", i); sale.Home(xxhash.Sum64String(name), s.sku.Slots) == slot {
			names = append(names, name)
		}
	}
	return names
}

// A closed entrance refuses without a server, tells an earlier winner of the order, and does not hide that one may exist.
func TestTheEntranceIsClosed(t *testing.T) {
	s := newSwitched(t, 20)
	if r := s.buy("ann", "k"); r.Code != sale.Accepted {
		t.Fatalf("%+v", r)
	}
	s.outcome()
	setToggle(t, s.testNode, sale.ToggleEntrance, sale.EntranceClosed)
	s.wires.since()
	s.want("without key", s.buy("bob", ""), sale.NotOnSale, sale.ReasonPaused)
	if asked := s.wires.since(); len(asked) > 0 {
		t.Errorf("a closed entrance asked %v", asked)
	}
	fresh := s.buy("bob", "k")
	s.want("with a new key", fresh, sale.NotOnSale, sale.ReasonPaused)
	if fresh.Unknown || fresh.SKU.OpensAt.IsZero() {
		t.Errorf("there is no such order, and the times are known: %+v", fresh)
	}
	won := s.buy("ann", "k")
	s.want("a winner", won, sale.Accepted, "")
	if !won.Replayed {
		t.Error("not the order that there is")
	}
	if _, err := s.through.Purchase(t.Context(), service.PurchaseRequest{SKU: s.sku.ID, Buyer: "ann", Key: "k", Quantity: 2}); !errors.Is(err, sale.ErrKeyReused) {
		t.Errorf("a key with another quantity: %v", err)
	}
	if asked := s.wires.since(); asked["admit 0"]+asked["admit 1"]+asked["admit reserve"] > 0 {
		t.Errorf("a closed entrance let through to the gate: %v", asked)
	}
	s.wires.cutOff(true)
	s.want("cut off, without key", s.buy("bob", ""), sale.NotOnSale, sale.ReasonPaused)
	cut := s.buy("ann", "k")
	s.want("cut off, a winner", cut, sale.NotOnSale, sale.ReasonPaused)
	if !cut.Unknown || cut.Order.ID != sale.DeriveOrderID(s.sku.ID, "ann", "k") {
		t.Errorf("an order may exist, and nobody says so: %+v", cut)
	}
	r, err := s.through.Purchase(t.Context(), service.PurchaseRequest{SKU: "never-heard-of", Buyer: "bob", Key: "k", Quantity: 1})
	if err != nil || r.Code != sale.NotOnSale || !r.Unknown {
		t.Errorf("cut off, a SKU that nobody remembers: %+v, %v", r, err)
	}
	s.wires.cutOff(false)
	setToggle(t, s.testNode, sale.ToggleEntrance, sale.EntranceOpen)
	s.want("open again", s.buy("bob", "k"), sale.Accepted, "")
	s.outcome()
}

// For one SKU, the others sell on.
func TestTheEntranceIsClosedForOneSKU(t *testing.T) {
	s := newSwitched(t, 20)
	set := sale.Toggle{Name: sale.ToggleEntrance, Scope: "other", Value: sale.EntranceClosed, Reason: "r", Actor: "a"}
	if err := s.toggles.Set(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.want("another one is closed", s.buy("ann", ""), sale.Accepted, "")
	s.outcome()
	set.Scope = s.sku.ID
	if err := s.toggles.Set(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.want("this one is closed", s.buy("bob", ""), sale.NotOnSale, sale.ReasonPaused)
}

// Without the fallback an empty home is the end: RETRY while others have units, SOLD_OUT when nobody has.
func TestWithoutFallbackNobodyAsksTheReserve(t *testing.T) {
	s := newSwitched(t, 8) // 2 units in each slot, 4 in the reserve
	setToggle(t, s.testNode, sale.ToggleFallback, sale.SwitchOff)
	buyers := s.atHome(0, 4)
	for _, name := range buyers[:2] {
		s.want("at home", s.buy(name, "k"), sale.Accepted, "")
	}
	s.outcome()
	s.wires.since()
	s.want("home empty, reserve full", s.buy(buyers[2], "k"), sale.Retry, sale.ReasonElsewhere)
	if asked := s.wires.since(); asked["admit 0"] != 1 || asked["admit reserve"] != 0 {
		t.Errorf("asked %v, want the home alone", asked)
	}
	setToggle(t, s.testNode, sale.ToggleFallback, sale.SwitchOn)
	s.want("with the reserve", s.buy(buyers[2], "k"), sale.Accepted, "")
	s.outcome()
	if asked := s.wires.since(); asked["admit reserve"] != 1 {
		t.Errorf("asked %v, want the reserve", asked)
	}
	if _, err := s.skus.Adjust(t.Context(), s.sku.ID, -5); err != nil { // nothing is left anywhere
		t.Fatal(err)
	}
	s.lab.clock.advance(time.Minute)
	setToggle(t, s.testNode, sale.ToggleFallback, sale.SwitchOff)
	s.want("nobody has any", s.buy(buyers[3], "k"), sale.SoldOut, "")
}

// Without the flags nobody is refused from memory, and the answers are the same.
func TestWithoutFlagsEveryPurchaseAsksTheGate(t *testing.T) {
	s := newSwitched(t, 1)
	s.want("the last one", s.untilSold("ann"), sale.Accepted, "")
	s.outcome()
	if err := s.watching.Look(t.Context(), s.sku.ID); err != nil {
		t.Fatal(err)
	}
	s.wires.since()
	s.want("with flags", s.buy("bob", ""), sale.SoldOut, "")
	if asked := s.wires.since(); len(asked) > 0 {
		t.Errorf("a flagged SKU asked %v", asked)
	}
	setToggle(t, s.testNode, sale.ToggleSoldoutFlag, sale.SwitchOff)
	s.want("without flags", s.buy("bob", ""), sale.SoldOut, "")
	if asked := s.wires.since(); asked["admit 0"]+asked["admit 1"] != 1 || asked["admit reserve"] != 1 {
		t.Errorf("asked %v, want home and reserve", asked)
	}
	if counts := s.results.Counts(); counts["SOLD_OUT"] != 2 || counts["ACCEPTED"] != 1 {
		t.Errorf("counted %v", counts)
	}
}

// untilSold buys with names until one of them finds the only unit at home or in the reserve.
func (s *switched) untilSold(name string) sale.Result {
	s.t.Helper()
	for _, slot := range []sale.Share{0, 1} {
		if r := s.buy(s.atHome(slot, 1)[0], name); r.Code == sale.Accepted {
			return r
		}
	}
	s.t.Fatal("nobody finds the unit")
	return sale.Result{}
}

// A frozen look is answered as last known and asks nobody, however often and however long; purchases go on.
func TestFrozenStockIsAnsweredFromMemory(t *testing.T) {
	s := newSwitched(t, 20)
	look := func(sku string) service.StockView {
		t.Helper()
		view, err := s.through.Stock(t.Context(), sku)
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	if view := look(s.sku.ID); view.Left != 20 || !view.Fresh || view.Frozen {
		t.Fatalf("live: %+v", view)
	}
	setToggle(t, s.testNode, sale.ToggleStockRead, sale.StockFrozen)
	s.lab.clock.advance(time.Hour)
	s.wires.since()
	s.wires.cutOff(true)
	for range 100 {
		if view := look(s.sku.ID); view.Left != 20 || !view.Fresh || !view.Frozen || view.Listing.ID != s.sku.ID {
			t.Fatalf("frozen: %+v", view)
		}
	}
	if asked := s.wires.since(); len(asked) > 0 || len(s.watching.Active(time.Hour)) > 1 {
		t.Errorf("frozen looks asked %v", asked)
	}
	s.wires.cutOff(false)
	s.want("a purchase meanwhile", s.buy("ann", "k"), sale.Accepted, "")
	s.outcome()
	second, err := s.lab.newSKU(t.Context(), s.testNode, 7, sale.SKU{Limit: 2, Slots: 2, ReservePct: 10})
	if err != nil {
		t.Fatal(err)
	}
	s.wires.since()
	if view := look(second.ID); view.Fresh || !view.Frozen || view.Listing.ID != second.ID {
		t.Errorf("never heard of: %+v", view)
	}
	if asked := s.wires.since(); asked["listing"] != 1 || len(asked) != 1 {
		t.Errorf("a SKU never heard of asked %v, want its listing once", asked)
	}
	setToggle(t, s.testNode, sale.ToggleStockRead, sale.StockLive)
	if view := look(s.sku.ID); view.Left != 19 || !view.Fresh || view.Frozen {
		t.Errorf("live again: %+v", view)
	}
}
