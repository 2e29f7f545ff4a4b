//go:build services

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/biz/sale"
	"stockade/store"
	"stockade/store/storetest"
)

// demoOrder promises one unit and writes its order row.
func demoOrder(t *testing.T, db *store.DB, sku, buyer string, id byte) sale.Order {
	t.Helper()
	d := db.Promise(context.Background(), []sale.Take{demoTake(sku, buyer, id)})
	if d[0].Outcome != sale.Promised {
		t.Fatalf("%+v", d)
	}
	refused, err := db.InsertOrders(context.Background(), []sale.Order{d[0].Order})
	if err != nil || refused != nil {
		t.Fatal(refused, err)
	}
	return d[0].Order
}

func demoCancel(o sale.Order) sale.Change {
	return sale.Change{Kind: sale.Cancel, Order: o.ID, Buyer: o.Buyer, Actor: "buyer"}
}

// settledInTheEnd asks until locks of a lost connection are out of the way.
func settledInTheEnd(t *testing.T, db *store.DB, changes ...sale.Change) []sale.Settled {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	for {
		got := db.Settle(ctx, changes)
		if got[0].Outcome != sale.NotChanged {
			return got
		}
		if ctx.Err() != nil {
			t.Fatalf("not settled in time: %+v", got)
		}
	}
}

// What a settlement answers when its connection is lost rests on one question: was COMMIT sent?
func TestMySQLSettlementLosesItsConnection(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
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
		want      sale.ChangeOutcome
		committed bool
	}{
		{"cut at BEGIN", "START TRANSACTION", cutBefore, sale.NotChanged, false},
		{"cut at the orders", "UPDATE orders", cutAfter, sale.NotChanged, false},
		{"cut at the ledger", "UPDATE ledger", cutBefore, sale.NotChanged, false},
		{"cut behind the restock", "INSERT INTO restock", cutAfter, sale.NotChanged, false},
		{"no answer to the notices", "INSERT INTO event", stall, sale.NotChanged, false},
		{"cut at COMMIT, before the server sees it", "COMMIT", cutBefore, sale.ChangeUnknown, false},
		{"cut at COMMIT, after the server did it", "COMMIT", cutAfter, sale.ChangeUnknown, true},
		{"no answer to COMMIT", "COMMIT", stall, sale.ChangeUnknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			paid, closed := demoOrder(t, db, "a", "u1", byte(2*i)), demoOrder(t, db, "a", "u2", byte(2*i+1))
			changes := []sale.Change{
				{Kind: sale.Pay, Order: paid.ID, Payment: paid.ID.String(), Actor: "provider"}, demoCancel(closed),
			}
			before := promised(t, db, "a")
			p.breakOn(c.statement, c.fault)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for _, g := range db.Settle(ctx, changes) {
				if g.Outcome != c.want || g.Err == nil || g.Restock != nil {
					t.Fatalf("%+v, want outcome %v", g, c.want)
				}
			}
			again := sale.Changed
			if c.committed {
				again = sale.Already
			}
			for _, g := range settledInTheEnd(t, db, changes...) {
				if g.Outcome != again {
					t.Fatalf("asked again: %+v, want %v", g, again)
				}
			}
			if got := promised(t, db, "a"); got != before-1 {
				t.Fatalf("%d promised in the end, want %d", got, before-1)
			}
			var restocks int
			err := raw.QueryRow("SELECT COUNT(*) FROM restock WHERE order_id = ?", closed.ID[:]).Scan(&restocks)
			if err != nil || restocks != 1 {
				t.Fatalf("%d restocks, %v", restocks, err)
			}
			// Money and stock of the next case start from here.
			settledInTheEnd(t, db, sale.Change{Kind: sale.Cancel, Order: paid.ID})
		})
	}
}

// Somebody sits on one SKU's ledger row: the other SKUs of the group are settled, and so are they all afterwards.
func TestMySQLSettlementStuckLedger(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	db := openMySQL(t, cfg)
	var changes []sale.Change
	for i, sku := range []string{"a", "b", "c"} {
		demoSKU(t, db, sku, 100)
		changes = append(changes, demoCancel(demoOrder(t, db, sku, "u", byte(2*i))), demoCancel(demoOrder(t, db, sku, "v", byte(2*i+1))))
	}
	stuck := begun(t, raw)
	if _, err := stuck.Exec("UPDATE ledger SET progress_at = 1 WHERE sku = 'b'"); err != nil {
		t.Fatal(err)
	}
	got := db.Settle(context.Background(), changes)
	for i, g := range got {
		want := sale.Changed
		if i/2 == 1 {
			want = sale.NotChanged
		}
		if g.Outcome != want {
			t.Errorf("change %d: %+v, want %v", i, g, want)
		}
	}
	if err := stuck.Rollback(); err != nil {
		t.Fatal(err)
	}
	for i, g := range db.Settle(context.Background(), changes) {
		want := sale.Already
		if i/2 == 1 {
			want = sale.Changed
		}
		if g.Outcome != want {
			t.Errorf("after the lock, change %d: %+v, want %v", i, g, want)
		}
	}
}

// Settlements that wait, for rows or for a connection, take none from purchases.
func TestMySQLSettlementsLeavePurchasesTheirConnections(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	cfg.MaxWriters, cfg.SettleWriters = 1, 2
	db := openMySQL(t, cfg)
	demoSKU(t, db, "a", 100)
	demoSKU(t, db, "b", 100)
	o := demoOrder(t, db, "a", "u", 1)
	stuck := begun(t, raw)
	if _, err := stuck.Exec("UPDATE orders SET created_at = 1 WHERE buyer = 'u'"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	var waiting sync.WaitGroup
	outcomes := make([]sale.ChangeOutcome, 8)
	for i := range outcomes {
		waiting.Go(func() { outcomes[i] = db.Settle(ctx, []sale.Change{demoCancel(o)})[0].Outcome })
	}
	blocked := func() (n int) {
		err := raw.QueryRow(`SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND info LIKE '%FROM orders%FOR UPDATE'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for blocked() < cfg.SettleWriters {
		if ctx.Err() != nil {
			t.Fatal("no settlement waits for the row")
		}
	}
	start := time.Now()
	for i := range 20 {
		if d := db.Promise(ctx, []sale.Take{demoTake("b", "v", byte(100+i))}); d[0].Outcome != sale.Promised && d[0].Outcome != sale.OverLimit {
			t.Fatalf("%+v", d)
		}
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("20 promises took %v beside settlements that wait", took)
	}
	if err := stuck.Rollback(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	changed := 0
	for _, o := range outcomes {
		switch o {
		case sale.Changed:
			changed++
		case sale.Already, sale.NotChanged:
		default:
			t.Errorf("outcome %v", o)
		}
	}
	last := settledInTheEnd(t, db, demoCancel(o))
	if changed > 1 || (last[0].Outcome == sale.Changed) == (changed == 1) {
		t.Errorf("the order was closed %d times, and then %+v", changed, last)
	}
}

// Ten thousand orders expire together.
func TestMySQLTenThousandDue(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	faults := new(storetest.Faults)
	storetest.DueInBulk(t, storetest.Subject{DB: openMySQLWith(t, cfg, faults), Raw: raw, Faults: faults}, 10_000)
}

func begun(t *testing.T, raw *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	})
	return tx
}
