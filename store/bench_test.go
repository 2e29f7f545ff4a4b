//go:build services

package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"stockade/biz/sale"
	"stockade/store"
	"stockade/store/storetest"
)

var benchID atomic.Uint64

func benchTakes(n int) []sale.Take {
	takes := make([]sale.Take, n)
	for i := range takes {
		id := benchID.Add(1)
		takes[i] = sale.Take{
			SKU: "hot", Buyer: fmt.Sprintf("buyer-%d", id), Quantity: 1, Share: sale.Share(id % 32),
			Token: sale.Token{Epoch: 1, Change: int64(id)}, Epoch: 1, Mode: sale.ModeRedis, Limit: 10,
		}
		binary.BigEndian.PutUint64(takes[i].Order[8:], id*0x9e3779b97f4a7c15) // scattered, as derived ids are
	}
	return takes
}

// BenchmarkPromise sells one hot SKU with two writers. One operation is one promised unit.
func BenchmarkPromise(b *testing.B) {
	for _, rows := range []int{1, 20, 100, 500} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			cfg, _ := storetest.MySQL(b)
			db := openMySQL(b, cfg)
			demoSKU(b, db, "hot", sale.MaxTotal)
			drive(b, rows, func(ctx context.Context, n int) error {
				for _, d := range db.Promise(ctx, benchTakes(n)) {
					if d.Outcome != sale.Promised {
						return fmt.Errorf("outcome %v: %w", d.Outcome, d.Err)
					}
				}
				return nil
			})
		})
	}
}

// BenchmarkInsertOrders writes order rows with two consumers. One operation is one order.
func BenchmarkInsertOrders(b *testing.B) {
	for _, rows := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			cfg, _ := storetest.MySQL(b)
			db := openMySQL(b, cfg)
			drive(b, rows, func(ctx context.Context, n int) error {
				return insertFresh(ctx, db, n)
			})
		})
	}
}

func insertFresh(ctx context.Context, db *store.DB, n int) error {
	orders := make([]sale.Order, n)
	for i, k := range benchTakes(n) {
		orders[i] = sale.Order{ID: k.Order, SKU: k.SKU, Buyer: k.Buyer, Quantity: 1}
	}
	refused, err := db.InsertOrders(ctx, orders)
	if refused != nil {
		return fmt.Errorf("refused: %v", refused)
	}
	return err
}

// drive shares b.N units out over two workers in batches and reports units per second.
func drive(b *testing.B, rows int, work func(ctx context.Context, n int) error) {
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(b.N))
	failed := make(chan error, 2)
	b.ResetTimer()
	for range 2 {
		go func() {
			for {
				if left.Add(-int64(rows)) <= -int64(rows) {
					failed <- nil
					return
				}
				if err := work(ctx, rows); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "units/s")
}
