package service_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// deafGate does not answer for one SKU.
type deafGate struct {
	realGate
	sku string
}

func (g deafGate) Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error) {
	if sku == g.sku {
		return nil, errInjected
	}
	return g.realGate.Peek(ctx, sku, slots)
}

// shop is a SKU with one order, on a node of its own.
func shop(t *testing.T) (l *lab, n *testNode, sku sale.SKU) {
	t.Helper()
	l = newLab(t)
	n = l.node(l.gate(t))
	t.Cleanup(n.stop)
	return l, n, sold(t, l, n)
}

// sold creates a SKU of 20 units and sells one.
func sold(t *testing.T, l *lab, n *testNode) sale.SKU {
	t.Helper()
	sku, err := l.newSKU(t.Context(), n, 20, sale.SKU{Limit: 2, Slots: 2, ReservePct: 10})
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: "k", Quantity: 1})
	if err != nil || r.Code != sale.Accepted {
		t.Fatalf("purchase: %+v, %v", r, err)
	}
	n.outcome()
	return sku
}

// wantWhole fails unless the gate holds what the truth says, under a live epoch.
func wantWhole(t *testing.T, l *lab, n *testNode, sku sale.SKU) {
	t.Helper()
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || !listing.Ledger.Live() {
		t.Fatalf("ledger %+v, %v, want it live", listing.Ledger, err)
	}
	figures, err := n.skus.Shares(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	var left int64
	for _, f := range figures {
		if f.Gone || f.Sealed || f.Epoch != listing.Ledger.LiveEpoch {
			t.Errorf("share %s: %+v, want it open at epoch %d", f.Share, f, listing.Ledger.LiveEpoch)
		}
		left += f.Left
	}
	if left != listing.Ledger.Available() {
		t.Errorf("%d units in the shares, %d available", left, listing.Ledger.Available())
	}
}

func TestRestore(t *testing.T) {
	for name, hurt := range map[string]func(t *testing.T, l *lab, n *testNode, sku sale.SKU){
		"everything lost": func(t *testing.T, l *lab, _ *testNode, sku sale.SKU) {
			if err := l.putBack(t.Context(), sku, copyOfGate{}); err != nil {
				t.Fatal(err)
			}
		},
		"an old snapshot came back": func(t *testing.T, l *lab, n *testNode, sku sale.SKU) {
			old, err := l.remember(t.Context(), sku)
			if err == nil {
				_, err = n.skus.Adjust(t.Context(), sku.ID, 5)
			}
			if err == nil {
				err = l.putBack(t.Context(), sku, old)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"a reshare left half-way": func(t *testing.T, l *lab, n *testNode, sku sale.SKU) {
			n.plan(2, crashAfter)
			if _, err := n.skus.Adjust(t.Context(), sku.ID, 5); err == nil {
				t.Fatal("the adjustment outlived its process")
			}
			n.plan(0, noFault)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, n, sku := shop(t)
			hurt(t, l, n, sku)
			if err := n.restorer.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantWhole(t, l, n, sku)
			r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: "k", Quantity: 1})
			if err != nil || r.Code != sale.Accepted || !r.Replayed {
				t.Errorf("the winner who asks again: %+v, %v", r, err)
			}
		})
	}
}

func TestRestoreLeavesAWholeGateAlone(t *testing.T) {
	l, n, sku := shop(t)
	before, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.restorer.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || after.Ledger.Epoch != before.Ledger.Epoch {
		t.Errorf("epoch %d became %d, %v", before.Ledger.Epoch, after.Ledger.Epoch, err)
	}
}

// A share that does not answer is no reason to shut its SKU, and none to leave the others unrestored.
func TestRestoreGoesOnPastASickShare(t *testing.T) {
	l, n, sick := shop(t)
	lost := sold(t, l, n)
	if err := l.putBack(t.Context(), lost, copyOfGate{}); err != nil {
		t.Fatal(err)
	}
	gate := deafGate{realGate: l.gate(t), sku: sick.ID}
	r := service.NewRestorer(l.db, gate, gate, n.resharer, nil, slog.New(slog.DiscardHandler))
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), sick.ID) || strings.Contains(err.Error(), lost.ID) {
		t.Errorf("error %v, want it to name %s alone", err, sick.ID)
	}
	wantWhole(t, l, n, lost)
	wantWhole(t, l, n, sick)
}
