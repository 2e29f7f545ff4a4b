package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"stockade/biz/sale"
)

// errBroken is what an armed fault point says.
var errBroken = errors.New("broken on purpose")

// Faults breaks fault points on a test's word. The zero value breaks none.
type Faults struct {
	mu     sync.Mutex
	broken sale.Point
	met    map[sale.Point]int
}

// At implements sale.Faults.
func (f *Faults) At(_ context.Context, p sale.Point) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.met == nil {
		f.met = map[sale.Point]int{}
	}
	f.met[p]++
	if p == f.broken {
		return errBroken
	}
	return nil
}

func (f *Faults) breaks(p sale.Point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = p
}

func (f *Faults) passed(p sale.Point) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.met[p]
}

// What breaks before COMMIT leaves nothing behind, and works the next time.
func faultPoints(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 2)
	k := take("a", "late", 1, 10)
	s.Faults.breaks(sale.PromiseWritten)
	d := promise(t, s.DB, k)
	if d[0].Outcome != sale.NotTaken || !errors.Is(d[0].Err, errBroken) {
		t.Fatalf("%+v", d)
	}
	s.Faults.breaks("")
	d = promise(t, s.DB, k)
	wantOutcomes(t, d, sale.Promised)

	s.Faults.breaks(sale.OrdersWritten)
	if refused, err := s.DB.InsertOrders(t.Context(), []sale.Order{d[0].Order}); !errors.Is(err, errBroken) || refused != nil {
		t.Fatal(refused, err)
	}
	if got := news(t, s); len(got) != 0 {
		t.Fatalf("announced %v", got)
	}
	s.Faults.breaks("")
	_, err := s.DB.InsertOrders(t.Context(), []sale.Order{d[0].Order})
	must(t, err)
	if got := news(t, s); len(got) != 1 {
		t.Fatalf("announced %v", got)
	}

	s.Faults.breaks(sale.SettlementWritten)
	asked := []sale.Change{cancel(orders[0]), pay(orders[1], "p")}
	for _, g := range change(t, s, asked...) {
		if g.Outcome != sale.NotChanged || !errors.Is(g.Err, errBroken) || g.Restock != nil {
			t.Fatalf("%+v", g)
		}
	}
	s.Faults.breaks("")
	wantSettled(t, change(t, s, asked...), sale.Changed, sale.Changed)
	before := s.Faults.passed(sale.SettlementWritten)
	wantSettled(t, change(t, s, asked...), sale.Already, sale.Already)
	if n := s.Faults.passed(sale.SettlementWritten); n != before {
		t.Fatalf("a settlement that wrote nothing passed its fault point %d times", n-before)
	}
	wantSettlement(t, s, "a")
}
