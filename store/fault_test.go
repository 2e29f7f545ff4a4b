//go:build services

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/biz/sale"
	"stockade/store"
	"stockade/store/storetest"
)

func demoSKU(t testing.TB, db *store.DB, id string, total int64) {
	t.Helper()
	ctx := context.Background()
	err := db.CreateSKU(ctx, sale.SKU{ID: id, Limit: 10, PaymentWindow: time.Minute, Slots: 4, ReservePct: 5}, total)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := db.BeginReshare(ctx, id, 0, sale.LedgerChange{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(snap.Close(), db.FinishReshare(ctx, id, 1, true, "")); err != nil {
		t.Fatal(err)
	}
}

func demoTake(sku, buyer string, id byte) sale.Take {
	return sale.Take{
		Order: sale.OrderID{15: id}, SKU: sku, Buyer: buyer, Quantity: 1, Token: sale.Token{Epoch: 1, Change: int64(id)},
		Epoch: 1, Mode: sale.ModeRedis, Limit: 10, Window: time.Minute,
	}
}

func promised(t *testing.T, db *store.DB, sku string) int64 {
	t.Helper()
	b, err := db.Books(context.Background(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if b.Promised != b.LiveUnits {
		t.Fatalf("books %+v", b)
	}
	return b.Promised
}

// What a promise answers when its connection is lost rests on one question: was COMMIT sent?
func TestMySQLLostConnection(t *testing.T) {
	cfg, _ := storetest.MySQL(t)
	dsn, err := mysql.ParseDSN(cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, dsn.Addr)
	dsn.Addr = p.address()
	cfg.DSN = dsn.FormatDSN()
	db := openMySQL(t, cfg)
	demoSKU(t, db, "a", 100)

	for i, c := range []struct {
		name      string
		statement string
		fault     fault
		want      sale.Outcome
		committed bool
	}{
		{"cut at BEGIN", "START TRANSACTION", cutBefore, sale.NotTaken, false},
		{"cut at the ledger", "UPDATE ledger", cutBefore, sale.NotTaken, false},
		{"cut behind the insert", "INSERT INTO outbox", cutAfter, sale.NotTaken, false},
		{"cut at COMMIT, before the server sees it", "COMMIT", cutBefore, sale.Undecided, false},
		{"cut at COMMIT, after the server did it", "COMMIT", cutAfter, sale.Undecided, true},
		{"no answer to COMMIT", "COMMIT", stall, sale.Undecided, true},
		{"no answer to the limit query", "SELECT buyer", stall, sale.NotTaken, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			takes := []sale.Take{demoTake("a", "u1", byte(2*i)), demoTake("a", "u2", byte(2*i+1))}
			for n := range takes {
				takes[n].Limit = 100
			}
			before := promised(t, db, "a")
			p.breakOn(c.statement, c.fault)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for _, d := range db.Promise(ctx, takes) {
				if d.Outcome != c.want || d.Err == nil {
					t.Fatalf("%+v, want outcome %v", d, c.want)
				}
			}
			now, again := before, sale.Promised
			if c.committed {
				now, again = before+2, sale.Found
			}
			if got := promised(t, db, "a"); got != now {
				t.Fatalf("%d promised, want %d", got, now)
			}
			// The same takes asked again, with no leftover lock of the lost connection in the way for long.
			retry, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			d := db.Promise(retry, takes)
			for d[0].Outcome == sale.NotTaken && retry.Err() == nil {
				d = db.Promise(retry, takes)
			}
			if d[0].Outcome != again || d[1].Outcome != again {
				t.Fatalf("asked again: %+v, want %v", d, again)
			}
			if got := promised(t, db, "a"); got != before+2 {
				t.Fatalf("%d promised in the end, want %d", got, before+2)
			}
		})
	}
}

// Somebody sits on one SKU's ledger row: the other SKUs of the group are sold, and a reshare gives up in time.
func TestMySQLStuckLedger(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	cfg.ReshareLockWaitMs = 2000
	db := openMySQL(t, cfg)
	for _, sku := range []string{"a", "b", "c"} {
		demoSKU(t, db, sku, 100)
	}
	stuck, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stuck.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	}()
	if _, err := stuck.Exec("UPDATE ledger SET progress_at = 1 WHERE sku = 'b'"); err != nil {
		t.Fatal(err)
	}
	takes := []sale.Take{demoTake("a", "u", 1), demoTake("b", "u", 2), demoTake("c", "u", 3), demoTake("b", "v", 4)}
	start := time.Now()
	d := db.Promise(context.Background(), takes)
	want := []sale.Outcome{sale.Promised, sale.NotTaken, sale.Promised, sale.NotTaken}
	for i := range want {
		if d[i].Outcome != want[i] {
			t.Errorf("take %d: %+v, want %v", i, d[i], want[i])
		}
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("a lock wait of a second took the group %v", took)
	}
	start = time.Now()
	if _, err := db.BeginReshare(context.Background(), "b", 1, sale.LedgerChange{}); err == nil {
		t.Error("a reshare began over somebody's lock")
	} else if took := time.Since(start); took < 1500*time.Millisecond {
		t.Errorf("the reshare waited only %v: %v", took, err)
	}
	if err := stuck.Rollback(); err != nil {
		t.Fatal(err)
	}
	if d := db.Promise(context.Background(), takes[1:2]); d[0].Outcome != sale.Promised {
		t.Errorf("after the lock: %+v", d[0])
	}
}
