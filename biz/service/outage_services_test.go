//go:build services

package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
	"stockade/store/storetest"
)

// newLinkedLab is a real lab whose ways to MySQL and Redis can be cut.
func newLinkedLab(t testing.TB) (l *lab, toMySQL, toRedis *link) {
	t.Helper()
	addr := os.Getenv("STOCKADE_TEST_REDIS")
	if addr == "" {
		t.Fatal("STOCKADE_TEST_REDIS is not set: it names a Redis server as host:port (scripts/services.sh env)")
	}
	cfg, _ := storetest.MySQL(t)
	dsn, err := mysql.ParseDSN(cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	toMySQL, toRedis = newLink(t, dsn.Addr), newLink(t, addr)
	dsn.Addr = toMySQL.addr()
	cfg.DSN = dsn.FormatDSN()
	l = buildLab(t, cfg, toRedis.addr(), fmt.Sprintf("outage%d", time.Now().UnixNano()))
	l.config, l.shard = service.DefaultConfig(), shardConfig(l.shard)
	l.config.JournalAgeMs, l.config.JournalEveryMs, l.config.PromiseTimeoutMs = 300, 100, 250
	t.Cleanup(func() { toMySQL.set(false); toRedis.set(false) })
	return l, toMySQL, toRedis
}

// shardConfig keeps a lab's servers and takes the times that nodes have.
func shardConfig(lab shard.Config) shard.Config {
	c := shard.DefaultConfig()
	c.Addresses, c.Prefix = lab.Addresses, lab.Prefix
	return c
}

// crowd has buyers ask for one unit each at the same time, and returns the answers.
func crowd(t *testing.T, n *testNode, sku string, buyers int) []sale.Result {
	t.Helper()
	results := make([]sale.Result, buyers)
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			var err error
			req := service.PurchaseRequest{SKU: sku, Buyer: fmt.Sprint("buyer-", i), Key: "k", Quantity: 1}
			if results[i], err = n.sales.Purchase(t.Context(), req); err != nil {
				t.Errorf("buyer %d: %v", i, err)
			}
		})
	}
	all.Wait()
	return results
}

func count(results []sale.Result) map[sale.Code]int {
	n := map[sale.Code]int{}
	for _, r := range results {
		n[r.Code]++
	}
	return n
}

// until polls a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// Under durability journal a sale goes on while MySQL is away, and everything is in MySQL soon after it is back.
func TestMySQLAwayUnderJournal(t *testing.T) {
	const buyers = 300
	l, toMySQL, _ := newLinkedLab(t)
	l.config.PurchaseTimeoutMs = 20_000 // nobody is to be BUSY because this machine is
	n := l.node(l.gate(t))
	defer n.stop()
	sku, err := l.newSKU(t.Context(), n, buyers-50, sale.SKU{Limit: 1, Slots: 4, ReservePct: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(crowd(t, n, sku.ID, 20)); got[sale.Accepted] != 20 {
		t.Fatalf("before: %v", got)
	}
	if err := n.toggles.Set(t.Context(), sale.Toggle{Name: sale.ToggleDurability, Value: sale.DurabilityJournal, Reason: "r", Actor: "a"}); err != nil {
		t.Fatal(err)
	}
	toMySQL.set(true)
	l.clock.advance(2 * time.Second) // the listing is out of date
	accepted := map[int]sale.Result{}
	for round := range 3 {
		for i, r := range crowd(t, n, sku.ID, buyers) {
			if was, ok := accepted[i]; ok && (r.Code != sale.Accepted || !r.Replayed || r.Order.ID != was.Order.ID) {
				t.Errorf("round %d: buyer %d was accepted and got %+v", round, i, r)
			}
			if r.Code == sale.Accepted {
				accepted[i] = r
			}
		}
		l.clock.advance(time.Minute)
	}
	for i := range 20 { // they are decided, so that no journal knows them
		if r := accepted[i]; r.Code != sale.Accepted || !r.Replayed {
			t.Errorf("buyer %d was accepted before MySQL went away and got %+v", i, r)
		}
		delete(accepted, i)
	}
	if len(accepted) < buyers-50-20-32 {
		t.Errorf("only %d buyers were accepted while MySQL was away", len(accepted))
	}
	for i, r := range accepted {
		order, err := n.sales.OrderOf(t.Context(), sku.ID, fmt.Sprint("buyer-", i), r.Order.ID)
		if err != nil || order.State != sale.OrderQueued {
			t.Fatalf("buyer %d polls the order and gets %+v, %v", i, order, err)
		}
	}
	if _, err := n.sales.OrderOf(t.Context(), sku.ID, "nobody", sale.OrderID{1}); !errors.Is(err, sale.ErrUnavailable) {
		t.Errorf("an order that nobody knows: %v, want unavailable", err)
	}

	toMySQL.set(false)
	back := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() { n.sweeper.Run(ctx) })
	defer func() { stop(); sweeping.Wait() }()
	until(t, "every accepted order is in MySQL", func() bool {
		books, err := l.db.Books(t.Context(), sku.ID)
		return err == nil && books.LiveOrders == int64(len(accepted)+20)
	})
	t.Logf("drained %d orders in %v", len(accepted), time.Since(back))
	for i, r := range accepted {
		if order, err := l.db.Order(t.Context(), fmt.Sprint("buyer-", i), r.Order.ID); err != nil || order.State == sale.OrderClosed {
			t.Errorf("buyer %d: %+v, %v", i, order, err)
		}
	}
	until(t, "the journals are empty and the gate matches", func() bool {
		figures, err := l.gate(t).Peek(t.Context(), sku.ID, sku.Slots)
		var left, pending int64
		for _, f := range figures {
			left, pending = left+f.Left, pending+f.Pending
		}
		return err == nil && pending == 0 && left == int64(buyers-50-20-len(accepted))
	})
}

// On path mysql a sale goes on without Redis, sells what there is and no more, and comes back whole.
func TestRedisAwayOnPathMySQL(t *testing.T) {
	const units, buyers = 100, 160
	l, _, toRedis := newLinkedLab(t)
	l.config.PurchaseTimeoutMs = 20_000 // nobody is to be BUSY because this machine is
	n := l.node(l.gate(t))
	defer n.stop()
	sku, err := l.newSKU(t.Context(), n, units, sale.SKU{Limit: 1, Slots: 4, ReservePct: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(crowd(t, n, sku.ID, 20)); got[sale.Accepted] != 20 {
		t.Fatalf("before: %v", got)
	}
	toRedis.set(true)
	if err := l.db.BypassGate(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	l.clock.advance(2 * time.Second)
	first := crowd(t, n, sku.ID, buyers)
	if got := count(first); got[sale.Accepted] != units || got[sale.SoldOut] != buyers-units {
		t.Errorf("past the gate: %v, want %d ACCEPTED and the others SOLD_OUT", got, units)
	}
	if err := n.watcher.Look(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	for i, r := range crowd(t, n, sku.ID, buyers) { // now out of memory, but for the winners
		if r.Code != first[i].Code || r.Code == sale.Accepted && (!r.Replayed || r.Order.ID != first[i].Order.ID) {
			t.Errorf("buyer %d got %v, then %+v", i, first[i].Code, r)
		}
	}
	toRedis.set(false)
	until(t, "the way back", func() bool {
		return n.resharer.Run(t.Context(), sku.ID, service.ReshareOrder{Reason: "back", Full: true, Mode: sale.ModeRedis}) == nil
	})
	l.clock.advance(2 * time.Second)
	for i, r := range crowd(t, n, sku.ID, buyers) {
		if first[i].Code == sale.Accepted && (r.Code != sale.Accepted || !r.Replayed) {
			t.Errorf("winner %d got %+v after the way back", i, r)
		}
	}
	books, err := l.db.Books(t.Context(), sku.ID)
	if err != nil || books.LiveUnits != units || books.Promised != units || books.OverLimit != 0 {
		t.Errorf("books %+v, %v", books, err)
	}
}

// Switching to and fro under load loses nothing, sells nothing twice and keeps to the limit.
func TestPathsSwitchedUnderLoad(t *testing.T) {
	const units, workers = 2000, 32
	l, _, _ := newLinkedLab(t)
	n := l.node(l.gate(t))
	defer n.stop()
	sku, err := l.newSKU(t.Context(), n, units, sale.SKU{Limit: 2, Slots: 8, ReservePct: 5})
	if err != nil {
		t.Fatal(err)
	}
	var accepted sync.Map
	var sold, next atomic.Int64
	done := make(chan struct{})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for sold.Load() < units/2 {
				i := next.Add(1)
				buyer := fmt.Sprint("buyer-", i/3) // three tries each, of which two may win
				r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: buyer, Key: fmt.Sprint(i), Quantity: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Code == sale.Accepted {
					accepted.Store(r.Order.ID, buyer)
					sold.Add(1)
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	switches := 0
	for running := true; running; switches++ {
		if err := l.db.BypassGate(t.Context(), sku.ID); err != nil {
			t.Error(err)
		}
		n.catalogue.Forget(sku.ID)
		time.Sleep(30 * time.Millisecond) // some traffic on this path
		if err := n.resharer.Run(t.Context(), sku.ID, service.ReshareOrder{Reason: "back", Full: true, Mode: sale.ModeRedis}); err != nil {
			t.Error(err)
		}
		n.catalogue.Forget(sku.ID)
		select {
		case <-done:
			running = false
		case <-time.After(30 * time.Millisecond):
		}
	}
	accepted.Range(func(id, buyer any) bool {
		if order, err := l.db.Order(t.Context(), buyer.(string), id.(sale.OrderID)); err != nil || order.State == sale.OrderClosed {
			t.Errorf("accepted order of %v: %+v, %v", buyer, order, err)
		}
		return true
	})
	books, err := l.db.Books(t.Context(), sku.ID)
	if err != nil || books.OverLimit != 0 || books.Promised != books.LiveUnits || books.LiveUnits > units || books.LiveOrders < sold.Load() {
		t.Errorf("books %+v, %v, sold %d", books, err, sold.Load())
	}
	t.Logf("%d orders over %d switches", sold.Load(), switches)
}

// letTimePass makes the lab's clock go, until the returned function is called.
func (l *lab) letTimePass() (stop func()) {
	const step = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	going.Go(func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for last := time.Now(); ctx.Err() == nil; {
			now := <-tick.C
			l.clock.advance(now.Sub(last))
			last = now
		}
	})
	return func() { cancel(); going.Wait() }
}

// BenchmarkPaths compares purchases through the gate with those past it, the rate of path mysql lifted.
func BenchmarkPaths(b *testing.B) {
	for _, mode := range []sale.Mode{sale.ModeRedis, sale.ModeMySQL} {
		for _, concurrent := range []int{64, 512} {
			b.Run(fmt.Sprintf("%s/%d", mode, concurrent), func(b *testing.B) {
				l, _, _ := newLinkedLab(b)
				l.config = service.DefaultConfig()
				l.config.MysqlPathRate = 1_000_000
				gate, err := shard.Open(b.Context(), l.shard)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = gate.Close() }()
				defer l.letTimePass()()
				n := l.node(gate)
				defer n.stop()
				sku, err := l.newSKU(b.Context(), n, sale.MaxTotal, sale.SKU{Limit: 1, Slots: 32, ReservePct: 5})
				if err == nil && mode == sale.ModeMySQL {
					err = l.db.BypassGate(b.Context(), sku.ID)
					n.catalogue.Forget(sku.ID)
				}
				if err != nil {
					b.Fatal(err)
				}
				perSecond(b, concurrent, func(i int) error {
					r, err := n.sales.Purchase(b.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: fmt.Sprint("buyer-", i), Key: "k", Quantity: 1})
					if err == nil && r.Code != sale.Accepted {
						err = fmt.Errorf("%v %s", r.Code, r.Reason)
					}
					return err
				})
			})
		}
	}
}
