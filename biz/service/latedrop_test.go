package service_test

import (
	"context"
	"log/slog"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
)

// promises makes a function a promiser.
type promises func(ctx context.Context, takes []sale.Take) []sale.Decision

func (p promises) Promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	return p(ctx, takes)
}

// between calls a function at one point.
type between struct {
	at   sale.Point
	call func()
}

func (b between) At(_ context.Context, p sale.Point) error {
	if p == b.at {
		b.call()
	}
	return nil
}

// accepting returns a node under durability journal and a purchase on it that must be accepted there.
func accepting(t *testing.T, l *lab, n *testNode, req service.PurchaseRequest) (accept func()) {
	t.Helper()
	err := n.toggles.Set(t.Context(), sale.Toggle{
		Name: sale.ToggleDurability, Value: sale.DurabilityJournal, Reason: "test", Actor: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	// Its promise in the background comes late: it is the journal that has to keep the order.
	writer := service.NewWriter(l.config, service.WriterParts{
		Promiser: rollsBack{}, Gate: l.gate(t), Relay: noRelay{},
	})
	t.Cleanup(writer.Close)
	sales := salesOf(t, l, n, writer)
	return func() {
		if r, err := sales.Purchase(t.Context(), req); err != nil || r.Code != sale.Accepted {
			t.Fatalf("the repetition under durability journal: %+v, %v", r, err)
		}
	}
}

// salesOf is the purchase path of a node with another writer.
func salesOf(t *testing.T, l *lab, n *testNode, writer *service.Writer) *service.Sales {
	t.Helper()
	flags, err := cache.NewFlags(cache.DefaultConfig(), l.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	recent, err := cache.NewRecent(cache.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return service.NewSales(l.config, service.SalesParts{
		Catalogue: n.catalogue, Flags: flags, Gate: l.gate(t), Writer: writer, Orders: l.db, Recent: recent,
		Watcher: n.watcher, Toggles: n.toggles, Healer: n.healer, Now: l.clock.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// wantKept sweeps the journal and expects the accepted order in MySQL, and the gate and the ledger to agree.
func wantKept(t *testing.T, l *lab, n *testNode, sku sale.SKU, req service.PurchaseRequest) {
	t.Helper()
	id := sale.DeriveOrderID(req.SKU, req.Buyer, req.Key)
	if o, err := n.sales.OrderOf(t.Context(), sku.ID, req.Buyer, id); err != nil || o.State != sale.OrderQueued {
		t.Errorf("accepted, and before the next sweep %+v, %v", o, err)
	}
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err == nil {
		_, err = n.sweeper.Sweep(t.Context(), listing, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, err := l.db.Order(t.Context(), req.Buyer, id); err != nil || o.State != sale.OrderQueued {
		t.Errorf("accepted, and in MySQL %+v, %v", o, err)
	}
	figures, err := l.gate(t).Peek(t.Context(), sku.ID, sku.Slots)
	if err != nil || figures[0].Left != 9 || figures[0].Pending != 0 {
		t.Errorf("the share has %+v, %v, want 9 of 10 left", figures, err)
	}
}

// A promise is refused on one node while another node, which found the take in the gate, tells the buyer ACCEPTED: the
// refusal must not give the unit back.
func TestARefusalSparesATakeThatWasAcknowledgedMeanwhile(t *testing.T) {
	for name, refusal := range map[string]sale.Outcome{"short": sale.Short, "over the limit": sale.OverLimit} {
		t.Run(name, func(t *testing.T) {
			l, n, sku, req := oneShare(t)
			other := l.node(l.gate(t))
			t.Cleanup(other.stop)
			accept := accepting(t, l, other, req)
			writer := service.NewWriter(l.config, service.WriterParts{
				Promiser: promises(func(_ context.Context, takes []sale.Take) []sale.Decision {
					accept()
					return []sale.Decision{{Outcome: refusal}}
				}),
				Gate: l.gate(t), Relay: noRelay{},
			})
			t.Cleanup(writer.Close)
			r, err := salesOf(t, l, n, writer).Purchase(t.Context(), req)
			if err != nil || r.Code == sale.Accepted {
				t.Fatalf("%+v, %v, want a refusal", r, err)
			}
			wantKept(t, l, n, sku, req)
		})
	}
}

// The journal sweeper finds a take without mark and without row, and before it drops it the buyer is told ACCEPTED.
func TestASweepSparesATakeThatWasAcknowledgedMeanwhile(t *testing.T) {
	l, n, sku, req := oneShare(t)
	writer := service.NewWriter(l.config, service.WriterParts{Promiser: rollsBack{}, Gate: l.gate(t), Relay: noRelay{}})
	t.Cleanup(writer.Close)
	if r, err := salesOf(t, l, n, writer).Purchase(t.Context(), req); err != nil || r.Code != sale.Busy {
		t.Fatalf("%+v, %v, want a take that nobody has promised", r, err)
	}
	other := l.node(l.gate(t))
	t.Cleanup(other.stop)
	accepted := 0
	accept := accepting(t, l, other, req)
	sweeper := service.NewJournalSweeper(l.config, service.JournalParts{
		Ledgers: l.db, Promiser: l.db, Gate: l.gate(t), Watcher: n.watcher, Log: slog.New(slog.DiscardHandler),
		Faults: between{sale.JournalDecided, func() { accept(); accepted++ }},
	})
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err == nil {
		_, err = sweeper.Sweep(t.Context(), listing, 0)
	}
	if err != nil || accepted != 1 {
		t.Fatalf("swept with %d repetitions meanwhile: %v", accepted, err)
	}
	wantKept(t, l, n, sku, req)
}

// oneShare is a SKU of 10 units in one slot, and a request for one of them.
func oneShare(t *testing.T) (*lab, *testNode, sale.SKU, service.PurchaseRequest) {
	t.Helper()
	l := newLab(t)
	n := l.node(l.gate(t))
	t.Cleanup(n.stop)
	sku, err := l.newSKU(t.Context(), n, 10, sale.SKU{Limit: 2, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l, n, sku, service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: "k", Quantity: 1}
}
