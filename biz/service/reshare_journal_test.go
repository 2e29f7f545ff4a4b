package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// A reshare closes an accepted order that no longer fits. The take's own promise, which comes late, finds that row and
// must not take the unit from the share once more.
func TestALatePromiseKeepsNothingThatAReshareClosed(t *testing.T) {
	a := acceptOne(t)
	a.sellOut(t)
	if err := a.n.resharer.Run(t.Context(), a.sku.ID, service.ReshareOrder{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	a.wantOrder(t, a.take, sale.OrderClosed)
	a.wantShare(t, 0, 0, 0)
	a.late(t)
	a.wantShare(t, 0, 0, 0)
}

func (a accepted) resharer(db realStore) *service.Resharer {
	return service.NewResharer(a.config, service.ResharerParts{
		Ledgers: db, Gate: a.gate, Layer: a.gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
	})
}

// An accepted order that the database refuses can never be written: the reshare goes on without it.
func TestAReshareEndsOverWhatTheDatabaseRefuses(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full: ", full), func(t *testing.T) {
			a := acceptOne(t)
			bad := a.admit(t, 0, unwritable)
			err := a.resharer(particular{a.db}).Run(t.Context(), a.sku.ID, service.ReshareOrder{Reason: "test", Full: full})
			if err != nil {
				t.Fatal(err)
			}
			a.wantOrder(t, a.take, sale.OrderQueued)
			if o, err := a.db.Order(t.Context(), bad.Buyer, bad.Order); !errors.Is(err, sale.ErrNotFound) {
				t.Errorf("%+v, %v", o, err)
			}
			wantWhole(t, a.lab, a.n, a.sku)
		})
	}
}

// forgetful says of the takes that it has promised for a reshare that they did not fit.
type forgetful struct{ realStore }

func (s forgetful) Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error) {
	decisions, err := s.realStore.Carry(ctx, sku, epoch, takes)
	for i := range decisions {
		decisions[i] = sale.Decision{Outcome: sale.Short}
	}
	return decisions, err
}

// An order that has a row when it is to be closed is told by that row, though the snapshot does not hold it.
func TestAReshareKeepsARowThatItsSnapshotDoesNotHold(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full: ", full), func(t *testing.T) {
			a := acceptOne(t)
			err := a.resharer(forgetful{a.db}).Run(t.Context(), a.sku.ID, service.ReshareOrder{Reason: "test", Full: full})
			if err != nil {
				t.Fatal(err)
			}
			a.wantOrder(t, a.take, sale.OrderQueued)
			wantWhole(t, a.lab, a.n, a.sku)
			if l := a.listing(t).Ledger; l.Promised != 1 || l.Available() != 9 {
				t.Errorf("ledger %+v, want one unit promised", l)
			}
		})
	}
}
