package cache_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"stockade/biz/sale"
	"stockade/cache"
)

func orderID(n int) sale.OrderID { return sale.DeriveOrderID("demo", "b", fmt.Sprint(n)) }

func newRecent(t testing.TB, limit int) *cache.Recent {
	t.Helper()
	r, err := cache.NewRecent(config(func(c *cache.Config) { c.MaxRecent = limit }))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecentKeepsTheYoungest(t *testing.T) {
	const limit, orders = 1600, 10_000
	r := newRecent(t, limit)
	for i := range orders {
		r.Add(orderID(i))
		r.Add(orderID(max(i-limit/4, 0))) // a retry's order is there already and takes no second seat
		for _, back := range []int{0, 1, limit / 2} {
			if !r.Has(orderID(max(i-back, 0))) {
				t.Fatalf("order %d is forgotten after %d others", i-back, back)
			}
		}
	}
	held := 0
	for i := range orders {
		if r.Has(orderID(i)) {
			held++
		}
	}
	if held != limit {
		t.Fatalf("%d orders are remembered, want %d", held, limit)
	}
	if r.Has(orderID(orders)) {
		t.Fatal("an order is remembered that never was")
	}
}

func TestRecentIsBoundedForAnyIDs(t *testing.T) {
	r := newRecent(t, 16) // one seat in each shard
	var first, second sale.OrderID
	binary.BigEndian.PutUint64(second[:], 1) // same last byte, same shard
	r.Add(first)
	r.Add(second)
	if r.Has(first) || !r.Has(second) {
		t.Fatalf("first %v, second %v", r.Has(first), r.Has(second))
	}
}

func TestRecentConcurrently(t *testing.T) {
	const workers, each = 8, 500
	r := newRecent(t, workers*each*2)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				id := orderID(w*each + i)
				r.Add(id)
				if !r.Has(id) {
					t.Errorf("order %d is not there", i)
				}
			}
		})
	}
	wg.Wait()
}
