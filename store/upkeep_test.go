//go:build services

package store_test

import (
	"context"
	"database/sql"
	"runtime"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/store/storetest"
)

const (
	manyOrders = 120_000
	lostEvery  = 10_000 // of those, one order row in that many is missing
	pageRows   = 1000
	// What one page may leave for the collector is well below what all orders would take at once.
	maxHeapGrowth = 16 << 20
	maxCompareAll = 45 * time.Second
)

// A comparison of many orders goes page by page: neither its memory nor the time of a page grows with the tables.
func TestComparesManyOrders(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	db := openMySQL(t, cfg)
	fillTables(t, raw)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	heap := newHeap()
	start := time.Now()
	missing, pages := 0, 0
	for after := int64(0); ; pages++ {
		found, next, err := db.CompareOutbox(ctx, "many", after, pageRows)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if d.Kind != sale.OrderMissing || d.Correction == "" {
				t.Fatalf("%+v", d)
			}
		}
		missing += len(found)
		heap.sample()
		if next == 0 {
			break
		}
		after = next
	}
	outbox := time.Since(start)
	if missing != manyOrders/lostEvery || pages != manyOrders/pageRows {
		t.Errorf("%d orders are missing in %d pages", missing, pages)
	}

	start = time.Now()
	strangers, rows := 0, 0
	for after, more := (sale.OrderCursor{}), true; more; rows += pageRows {
		found, next, again, err := db.CompareOrders(ctx, "many", after, pageRows)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if d.Kind != sale.OrderStranger {
				t.Fatalf("%+v", d)
			}
		}
		strangers += len(found)
		heap.sample()
		after, more = next, again
	}
	orders := time.Since(start)
	if strangers != 1 || rows < manyOrders-missing {
		t.Errorf("%d strangers in %d order rows", strangers, rows)
	}
	t.Logf("%d orders: outbox %v, order rows %v, heap grew by %d KiB", manyOrders, outbox, orders, heap.grew()>>10)
	if heap.grew() > maxHeapGrowth {
		t.Errorf("the heap grew by %d KiB", heap.grew()>>10)
	}
	if outbox+orders > maxCompareAll {
		t.Errorf("outbox %v, order rows %v", outbox, orders)
	}
}

// heap watches how far the heap rises, garbage of the last pages included.
type heap struct{ start, most uint64 }

func newHeap() *heap {
	runtime.GC()
	h := &heap{}
	h.sample()
	h.start = h.most
	return h
}

func (h *heap) sample() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

func (h *heap) grew() uint64 { return h.most - h.start }

// fillTables writes many DONE outbox rows with their order rows, some of which are left out, and one order row of nobody.
func fillTables(t *testing.T, raw *sql.DB) {
	t.Helper()
	const digits = `(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
		UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)`
	for _, text := range []string{
		`INSERT INTO ledger (sku, epoch, live_epoch, laid_epoch, laid_gate, mode, state, progress_at, total, promised, sold)
			VALUES ('many', 1, 1, 1, '', 'redis', 'STEADY', 0, 1000000, 120000, 0)`,
		`INSERT INTO sku (id, state, opens_at, closes_at, buyer_limit, payment_window, slots, reserve_pct, created_at)
			VALUES ('many', 'OPEN', 0, 0, 2, 900000, 4, 5, 0)`,
		`INSERT INTO outbox
			(id, sku, buyer, qty, share, epoch, token, state, attempts, node, created_at, sent_at, expires_at)
			SELECT UNHEX(MD5(n)), 'many', CONCAT('buyer-', n DIV 2), 1, 0, 1, n, 2, 0, 'node', 1, 1, 2
			FROM (SELECT a.d + 10*b.d + 100*c.d + 1000*d.d + 10000*e.d + 100000*f.d n
			FROM ` + digits + ` a, ` + digits + ` b, ` + digits + ` c, ` + digits + ` d, ` + digits + ` e,
			(SELECT 0 d UNION ALL SELECT 1) f) numbers WHERE n < 120000 ORDER BY n`,
		`INSERT INTO orders (buyer, id, sku, qty, state, accepted_at, expires_at, created_at)
			SELECT buyer, id, sku, qty, 1, 1, 2, 1 FROM outbox WHERE token % 10000 <> 0`,
		`INSERT INTO orders (buyer, id, sku, qty, state, accepted_at, expires_at, created_at)
			VALUES ('buyer-x', UNHEX(MD5('x')), 'many', 1, 1, 1, 2, 1)`,
	} {
		if _, err := raw.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
