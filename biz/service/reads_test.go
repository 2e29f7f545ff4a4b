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
