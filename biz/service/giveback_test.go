package service_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
)

// rollsBack is a promiser whose transactions do nothing.
type rollsBack struct{}

func (rollsBack) Promise(_ context.Context, takes []sale.Take) []sale.Decision {
	decisions := make([]sale.Decision, len(takes))
	for i := range decisions {
		decisions[i] = sale.Decision{Outcome: sale.NotTaken, Err: errors.New("lock wait timeout")}
	}
	return decisions
}

// A promise that was rolled back gives its unit back only if no other request can be promising the same take: a request
// with a key may be running on another node, which found the take in the gate.
func TestRolledBackTakes(t *testing.T) {
	for _, tt := range []struct {
		key           string
		left, pending int64
	}{
		{key: "", left: 10, pending: 0},
		{key: "k", left: 9, pending: 1},
	} {
		l := newLab(t)
		gate := l.gate(t)
		n := l.node(gate)
		defer n.stop()
		sku, err := l.newSKU(t.Context(), n, 10, sale.SKU{Limit: 2, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		flags, err := cache.NewFlags(cache.DefaultConfig(), l.clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		recent, err := cache.NewRecent(cache.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		writer := service.NewWriter(l.config, service.WriterParts{Promiser: rollsBack{}, Gate: gate, Relay: noRelay{}})
		defer writer.Close()
		sales := service.NewSales(l.config, service.SalesParts{
			Catalogue: n.catalogue, Flags: flags, Gate: gate, Writer: writer, Orders: l.db, Recent: recent,
			Watcher: n.watcher, Now: l.clock.Now, Log: slog.New(slog.DiscardHandler),
		})
		r, err := sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: "b", Key: tt.key, Quantity: 1})
		if err != nil || r.Code != sale.Busy {
			t.Fatalf("key %q: %+v, %v, want BUSY", tt.key, r, err)
		}
		figures, err := gate.Peek(t.Context(), sku.ID, sku.Slots)
		if err != nil {
			t.Fatal(err)
		}
		if f := figures[0]; f.Left != tt.left || f.Pending != tt.pending {
			t.Errorf("key %q: %d left and %d pending, want %d and %d", tt.key, f.Left, f.Pending, tt.left, tt.pending)
		}
		if _, err := n.sweeper.Sweep(t.Context(), sale.Listing{SKU: sale.SKU{ID: sku.ID, State: sale.Open, Slots: 1}}, 0); err != nil {
			t.Fatal(err)
		}
		if figures, err = gate.Peek(t.Context(), sku.ID, sku.Slots); err != nil || figures[0].Left != 10 {
			t.Errorf("key %q: after the journal was swept: %+v, %v, want all units back", tt.key, figures, err)
		}
	}
}
