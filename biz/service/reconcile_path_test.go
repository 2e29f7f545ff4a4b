package service_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// archive is a clinic whose rows agree and whose gate does not answer.
type archive struct{ *clinic }

func (a archive) CheckLedger(context.Context, string) (sale.LedgerCheck, error) {
	return sale.LedgerCheck{Promised: 10, LiveUnits: 10}, nil
}

func (a archive) CompareOutbox(context.Context, string, int64, int) ([]sale.Discrepancy, int64, error) {
	return nil, 0, nil
}

func (a archive) CompareOrders(
	context.Context, string, sale.OrderCursor, int,
) ([]sale.Discrepancy, sale.OrderCursor, bool, error) {
	return nil, sale.OrderCursor{}, false, nil
}

func (a archive) Peek(context.Context, string, int) ([]sale.Figures, error) {
	return nil, errors.New("connection refused")
}

// Who sells past Redis because it is down can still prove the books; who does not must be told that the gate is missing.
func TestUnderPathMySQLRowsAreComparedWithoutRedis(t *testing.T) {
	a := archive{newClinic()}
	skus := service.NewSKUs(service.SKUParts{
		Ledgers: a, Gate: a, Books: a, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Conservation: service.NewConservation(service.ConservationParts{Ledgers: a, Gate: a, Books: a, Now: time.Now, Log: slog.New(slog.DiscardHandler)}),
	})
	if _, err := skus.Reconcile(t.Context(), "demo", false); !errors.Is(err, sale.ErrUnavailable) {
		t.Errorf("through Redis: %v, want %v", err, sale.ErrUnavailable)
	}
	a.listing.Ledger.Mode = sale.ModeMySQL
	if r, err := skus.Reconcile(t.Context(), "demo", false); err != nil || !r.Agrees || r.Gate != nil {
		t.Errorf("past Redis: %+v, %v", r, err)
	}
}
