//go:build services

package service_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/store"
	"stockade/store/storetest"
)

// newRealLab runs on a real Redis and a real MySQL or MariaDB.
func newRealLab(t *testing.T) *lab {
	t.Helper()
	addr := os.Getenv("STOCKADE_TEST_REDIS")
	if addr == "" {
		t.Fatal("STOCKADE_TEST_REDIS is not set: it names a Redis server as host:port (scripts/services.sh env)")
	}
	cfg, _ := storetest.MySQL(t)
	prefix := fmt.Sprintf("model%d", time.Now().UnixNano())
	l := buildLab(t, cfg, addr, prefix)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		keys, err := l.raw.Keys(ctx, prefix+":*").Result()
		if err == nil && len(keys) > 0 {
			err = l.raw.Unlink(ctx, keys...).Err()
		}
		if err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestModelReal(t *testing.T) {
	const labs = 2
	setRapid(t, realHistories/labs)
	for i := range labs {
		t.Run(fmt.Sprint("lab ", i), func(t *testing.T) {
			t.Parallel()
			runHistories(t, newRealLab(t), i)
		})
	}
}

// openGate admits everything and settles nothing: the benchmark is about the writer alone.
type openGate struct{ service.Gate }

func (openGate) SettleLater(...sale.Settlement) {}

// BenchmarkWriter compares the outbox writer with what it replaces: one plain INSERT of an outbox row per request, each
// its own durable commit, over the same pool, without ledger or limit.
func BenchmarkWriter(b *testing.B) {
	for _, buyers := range []int{64, 512} {
		b.Run(fmt.Sprintf("group commit/%d", buyers), func(b *testing.B) {
			cfg, _ := storetest.MySQL(b)
			db, err := store.Open(b.Context(), cfg, store.Options{Node: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			epoch := liveSKU(b, db)
			w := service.NewWriter(service.DefaultConfig(), service.WriterParts{Promiser: db, Gate: openGate{}, Relay: noRelay{}})
			defer w.Close()
			perSecond(b, buyers, func(n int) error {
				d, err := w.Decide(b.Context(), sale.Take{
					Order: benchID(n), SKU: "bench", Buyer: fmt.Sprint("buyer-", n), Quantity: 1, Limit: 1,
					Token: sale.Token{Epoch: epoch, Change: int64(n)}, Epoch: epoch, Mode: sale.ModeRedis, Window: time.Hour,
				})
				if err == nil && d.Outcome != sale.Promised {
					err = fmt.Errorf("outcome %v: %w", d.Outcome, d.Err)
				}
				return err
			})
		})
		b.Run(fmt.Sprintf("plain insert/%d", buyers), func(b *testing.B) {
			_, raw := storetest.MySQL(b)
			raw.SetMaxOpenConns(32)
			raw.SetMaxIdleConns(32)
			perSecond(b, buyers, func(n int) error {
				id := benchID(n)
				_, err := raw.ExecContext(b.Context(), "INSERT INTO outbox (id, sku, buyer, qty, share, epoch, token, state, attempts, node,"+
					" created_at, sent_at, expires_at) VALUES (?, 'bench', ?, 1, 0, 1, ?, 0, 0, 'bench', ?, ?, ?)",
					id[:], fmt.Sprint("buyer-", n), n, n, n, n)
				return err
			})
		})
	}
}

// liveSKU makes a SKU that promises; no gate is needed for that.
func liveSKU(b *testing.B, db *store.DB) (epoch int64) {
	b.Helper()
	ctx := b.Context()
	sku := sale.SKU{ID: "bench", Limit: 1, Slots: 1, PaymentWindow: time.Hour}
	if err := db.CreateSKU(ctx, sku, sale.MaxTotal); err != nil {
		b.Fatal(err)
	}
	snap, err := db.BeginReshare(ctx, sku.ID, 0, sale.LedgerChange{})
	if err != nil {
		b.Fatal(err)
	}
	epoch = snap.Listing().Ledger.Epoch
	if err := snap.Close(); err != nil {
		b.Fatal(err)
	}
	if err := db.FinishReshare(ctx, sku.ID, epoch, true, ""); err != nil {
		b.Fatal(err)
	}
	return epoch
}

func benchID(n int) sale.OrderID { return sale.DeriveOrderID("bench", "", fmt.Sprint(n)) }

// perSecond runs b.N requests over a number of concurrent buyers and reports the rate.
func perSecond(b *testing.B, buyers int, request func(n int) error) {
	var wait sync.WaitGroup
	next := make(chan int, buyers)
	b.ResetTimer()
	for range buyers {
		wait.Go(func() {
			for n := range next {
				if err := request(n); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for n := range b.N {
		next <- n + 1
	}
	close(next)
	wait.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
}
