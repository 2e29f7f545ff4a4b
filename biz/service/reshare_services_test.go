//go:build services && !race

package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
	"stockade/store/storetest"
)

// Bounds of a reshare at 100 000 orders.
const (
	reshareOrders = 100_000
	lightBound    = 20 * time.Millisecond
	fullBound     = 5 * time.Second
)

// TestReshareIsFastEnough reshares a SKU of 100 000 orders on the real servers. Both kinds are judged by their median: the
// slowest tell how busy the machine is.
func TestReshareIsFastEnough(t *testing.T) {
	l, gate, sku := stocked(t, reshareOrders)
	r := service.NewResharer(service.DefaultConfig(), service.ResharerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
	})
	for range 3 {
		if err := r.Run(t.Context(), sku, service.ReshareOrder{Reason: "test", Full: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		if err := r.Run(t.Context(), sku, service.ReshareOrder{Reason: "test", Tail: i%2 == 0}); err != nil {
			t.Fatal(err)
		}
	}
	records := r.Records(sku)
	light, full := service.TimesOf(records, false), service.TimesOf(records, true)
	t.Logf("light %d: p50 %v p99 %v · full %d: p50 %v p99 %v", light.Count, light.P50, light.P99, full.Count, full.P50, full.P99)
	if light.Count != 30 || full.Count != 3 || light.P50 > lightBound || full.P50 > fullBound {
		t.Errorf("half of them took %v and %v: want light ones within %v and full ones within %v", light.P50, full.P50, lightBound, fullBound)
	}
}

// stocked is a SKU with so many promised orders, loaded on the real servers.
func stocked(t testing.TB, orders int) (*lab, *shard.Gate, string) {
	t.Helper()
	addr := os.Getenv("STOCKADE_TEST_REDIS")
	if addr == "" {
		t.Fatal("STOCKADE_TEST_REDIS is not set: it names a Redis server as host:port (scripts/services.sh env)")
	}
	cfg, _ := storetest.MySQL(t)
	prefix := fmt.Sprintf("reshare%d", time.Now().UnixNano())
	l := buildLab(t, cfg, addr, prefix)
	gate, err := shard.Open(t.Context(), l.shard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	sku := sale.SKU{ID: "fast", Limit: 2, Slots: 32, ReservePct: 5, PaymentWindow: time.Hour}
	t.Cleanup(func() {
		for _, share := range sale.Shares(sku.Slots) {
			for _, part := range []string{"stock", "buyer", "order", "journal"} {
				_ = l.raw.Unlink(context.Background(), prefix+":{"+shard.Tag(sku.ID, share)+"}:"+part).Err()
			}
		}
	})
	if err := l.db.CreateSKU(t.Context(), sku, int64(2*orders)); err != nil {
		t.Fatal(err)
	}
	r := service.NewResharer(service.DefaultConfig(), service.ResharerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
	})
	if err := r.Run(t.Context(), sku.ID, service.ReshareOrder{Reason: "load", Full: true}); err != nil {
		t.Fatal(err)
	}
	promiseMany(t, l, sku, orders)
	return l, gate, sku.ID
}

// promiseMany promises orders of one unit, each of another buyer, past the gate.
func promiseMany(t testing.TB, l *lab, sku sale.SKU, orders int) {
	t.Helper()
	const group = 500
	work := make(chan int)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for from := range work {
				takes := make([]sale.Take, min(group, orders-from))
				for i := range takes {
					buyer := fmt.Sprint("buyer-", from+i)
					takes[i] = sale.Take{
						Order: sale.DeriveOrderID(sku.ID, buyer, "k"), SKU: sku.ID, Buyer: buyer, Quantity: 1,
						Token: sale.Token{Epoch: 1, Change: int64(from + i)}, Epoch: 1, Mode: sale.ModeRedis, Limit: 2, Window: time.Hour,
					}
				}
				for i, d := range l.db.Promise(context.Background(), takes) {
					if d.Outcome != sale.Promised {
						t.Errorf("take %d: %v %v", from+i, d.Outcome, d.Err)
						return
					}
				}
			}
		})
	}
	for from := 0; from < orders; from += group {
		work <- from
	}
	close(work)
	wait.Wait()
}
