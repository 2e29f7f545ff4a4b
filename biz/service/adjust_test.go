package service_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// meddledGate calls a function before each step of a reshare; its error becomes the step's.
type meddledGate struct {
	realGate
	seal, open func() error
}

func (g meddledGate) SealAll(
	ctx context.Context, sku string, shares []sale.Share, epoch int64, limit int,
) ([]sale.SealedShare, error) {
	if err := g.seal(); err != nil {
		return nil, err
	}
	return g.realGate.SealAll(ctx, sku, shares, epoch, limit)
}

func (g meddledGate) OpenAll(ctx context.Context, sku string, shares []sale.Share, epoch int64, left []int64) error {
	if err := g.open(); err != nil {
		return err
	}
	return g.realGate.OpenAll(ctx, sku, shares, epoch, left)
}

func nothing() error { return nil }

// adjustment is a SKU of 100 units with one slot and a resharer that can be meddled with.
func adjustment(t *testing.T) (l *lab, n *testNode, gate *meddledGate, sku string, run func(add int64) error) {
	t.Helper()
	l = newLab(t)
	g := l.gate(t)
	n = l.node(g)
	t.Cleanup(n.stop)
	made, err := l.newSKU(t.Context(), n, 100, sale.SKU{Limit: 2, Slots: 1, OpensAt: l.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	gate = &meddledGate{realGate: g, seal: nothing, open: nothing}
	run = func(add int64) error {
		r := service.NewResharer(l.config, service.ResharerParts{
			Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
		})
		return r.Run(t.Context(), made.ID, service.ReshareOrder{Reason: "adjust", AddTotal: add})
	}
	return l, n, gate, made.ID, run
}

func wantTotal(t *testing.T, l *lab, sku string, want int64) {
	t.Helper()
	listing, err := l.db.Listing(t.Context(), sku)
	if err != nil || listing.Ledger.Total != want {
		t.Errorf("total %d, error %v, want %d", listing.Ledger.Total, err, want)
	}
}

// Whoever hears of a conflict asks again: it must not be the answer of an adjustment that counts.
func TestAnAdjustmentOvertakenByAnotherSucceeds(t *testing.T) {
	l, n, gate, sku, run := adjustment(t)
	overtaken := make(chan struct{}, 1)
	overtaken <- struct{}{}
	gate.seal = func() error {
		select {
		case <-overtaken: // only the first time, which is after the ledger took the 3
			_, err := n.skus.Adjust(t.Context(), sku, 5)
			return err
		default:
			return nil
		}
	}
	if err := run(3); err != nil {
		t.Errorf("the adjustment that was overtaken: %v", err)
	}
	wantTotal(t, l, sku, 108)
	figures, err := n.skus.Shares(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	var left int64
	for _, f := range figures {
		left += f.Left
	}
	if left != 108 {
		t.Errorf("%d units in the shares, want 108", left)
	}
}

// The caller must not ask again without looking when the total was changed and what followed failed.
func TestAnAdjustmentThatFailsHalfWaySaysSo(t *testing.T) {
	l, _, gate, sku, run := adjustment(t)
	gate.open = func() error { return errInjected }
	if err := run(3); !errors.Is(err, service.ErrTotalUnknown) || !errors.Is(err, errInjected) {
		t.Errorf("error %v, want the fault and ErrTotalUnknown", err)
	}
	wantTotal(t, l, sku, 103)
	gate.seal = func() error { return errInjected }
	if err := run(-104); errors.Is(err, service.ErrTotalUnknown) || err == nil {
		t.Errorf("error %v, want one that says that nothing was changed", err)
	}
	wantTotal(t, l, sku, 103)
}

// lostBegin makes the first change of the ledger and does not say so; meanwhile comes before the second.
type lostBegin struct {
	realStore
	tries     int
	meanwhile func() error
}

func (s *lostBegin) BeginReshare(ctx context.Context, sku string, seen int64, change sale.LedgerChange) (sale.Snapshot, error) {
	s.tries++
	if s.tries == 2 {
		if err := s.meanwhile(); err != nil {
			return nil, err
		}
	}
	snap, err := s.realStore.BeginReshare(ctx, sku, seen, change)
	if err == nil && s.tries == 1 {
		return nil, errors.Join(errInjected, snap.Close())
	}
	return snap, err
}

// A conflict invites to ask again. An adjustment that may count must not end with one, whatever overtakes its next try.
func TestAnAdjustmentThatMayCountIsNoConflict(t *testing.T) {
	l, n, gate, sku, _ := adjustment(t)
	db := &lostBegin{realStore: l.db, meanwhile: func() error {
		_, err := n.skus.Adjust(t.Context(), sku, 5)
		return err
	}}
	r := service.NewResharer(l.config, service.ResharerParts{
		Ledgers: db, Gate: gate, Layer: gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
	})
	err := r.Run(t.Context(), sku, service.ReshareOrder{Reason: "adjust", AddTotal: 3})
	if !errors.Is(err, service.ErrTotalUnknown) || errors.Is(err, sale.ErrConflict) {
		t.Errorf("error %v, want ErrTotalUnknown alone", err)
	}
	wantTotal(t, l, sku, 108)
}
