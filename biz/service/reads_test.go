package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// silent is a database that takes questions and never answers.
type silent struct{}

func (silent) Order(ctx context.Context, _ string, _ sale.OrderID) (sale.Order, error) {
	<-ctx.Done()
	return sale.Order{}, ctx.Err()
}

func (silent) OrdersOf(ctx context.Context, _ string, _ sale.OrderID, _ int) ([]sale.Order, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Listing(ctx context.Context, _ string) (sale.Listing, error) {
	<-ctx.Done()
	return sale.Listing{}, ctx.Err()
}

func (s silent) Refresh(ctx context.Context, sku string) (sale.Listing, error) {
	return s.Listing(ctx, sku)
}

func (silent) Remembered(string) (sale.Listing, bool) { return sale.Listing{}, false }

func (silent) Forget(string) {}

// A caller who waits for a database that hangs would hold a connection for each look, and a stop of the node as well.
func TestLooksDoNotWaitForADatabaseThatHangs(t *testing.T) {
	cfg := service.DefaultConfig()
	cfg.ReadTimeoutMs = 20
	sales := service.NewSales(cfg, service.SalesParts{
		Catalogue: silent{}, Orders: silent{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	for name, look := range map[string]func(context.Context) error{
		"order":  func(ctx context.Context) error { _, err := sales.Order(ctx, "ada", sale.OrderID{1}); return err },
		"orders": func(ctx context.Context) error { _, err := sales.OrdersOf(ctx, "ada", sale.OrderID{}, 10); return err },
		"stock":  func(ctx context.Context) error { _, err := sales.Stock(ctx, "shoe"); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := look(ctx)
		if !errors.Is(err, sale.ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("%s: error %v, want ErrUnavailable before the caller gives up", name, err)
		}
		cancel()
	}
}

// While a database is down every purchase fails alike: a line for each would fill the disk during a sale.
func TestTroubleOfManyPurchasesIsAFewLines(t *testing.T) {
	var lines bytes.Buffer
	clock := newClock()
	sales := service.NewSales(service.DefaultConfig(), service.SalesParts{
		Catalogue: broken{}, Now: clock.Now, Log: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	buy := func() {
		r, err := sales.Purchase(t.Context(), service.PurchaseRequest{SKU: "shoe", Buyer: "ada", Quantity: 1})
		if err != nil || r.Code != sale.Busy {
			t.Fatalf("answer %+v, error %v, want BUSY", r, err)
		}
	}
	for range 1000 {
		buy()
	}
	if n := strings.Count(lines.String(), "\n"); n != 1 {
		t.Errorf("%d lines about 1000 purchases within a second, want 1", n)
	}
	clock.advance(time.Second)
	lines.Reset()
	buy()
	if text := lines.String(); !strings.Contains(text, "skipped=999") {
		t.Errorf("the next line does not tell of those left out: %q", text)
	}
}

// broken is a catalogue without a database behind it.
type broken struct{ silent }

func (broken) Listing(context.Context, string) (sale.Listing, error) {
	return sale.Listing{}, errInjected
}

// late is a catalogue that reads slowly.
type late struct {
	silent
	after   time.Duration
	listing sale.Listing
}

func (l late) Listing(context.Context, string) (sale.Listing, error) {
	<-time.After(l.after)
	return l.listing, nil
}

// A listing that has to be read counts as part of the purchase that waits for it.
func TestOneBoundHoldsForTheWholePurchase(t *testing.T) {
	const bound, reading = time.Second, 900 * time.Millisecond
	cfg := service.DefaultConfig()
	cfg.PurchaseTimeoutMs = int(bound / time.Millisecond)
	paused := sale.Listing{SKU: sale.SKU{ID: "shoe", State: sale.Paused, Limit: 1, Slots: 1}}
	paused.Ledger.Mode, paused.Ledger.Promised = sale.ModeMySQL, 1
	sales := service.NewSales(cfg, service.SalesParts{
		Catalogue: late{after: reading, listing: paused}, Orders: silent{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	begun := time.Now()
	r, err := sales.Purchase(t.Context(), service.PurchaseRequest{SKU: "shoe", Buyer: "ada", Key: "k", Quantity: 1})
	took := time.Since(begun)
	if err != nil || r.Code != sale.Busy || !r.Unknown {
		t.Errorf("answer %+v, error %v, want BUSY with outcome unknown", r, err)
	}
	if took < bound || took > bound+reading-bound/10 {
		t.Errorf("the answer took %v, want about %v in all", took, bound)
	}
}
