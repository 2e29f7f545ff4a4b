package storetest

import "testing"

func countUndelivered(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	newSKU(t, s.DB, "b", 10_000, 10)
	want := func(limit, want int64) {
		t.Helper()
		if n, err := s.DB.CountUndelivered(ctx, limit); err != nil || n != want {
			t.Fatalf("%d counted of at most %d, %v; want %d", n, limit, err, want)
		}
	}
	want(100, 0)
	orders := append(sell(t, s, "a", 30), sell(t, s, "b", 12)...)
	want(100, 42)
	want(42, 42)
	want(41, 41) // it stops there
	must(t, s.DB.MarkSent(ctx, ids(orders[:40])))
	want(100, 2)
	_, err := s.DB.InsertOrders(ctx, orders[:10])
	must(t, err)
	want(100, 2)
	_, err = s.DB.RenewAll(ctx)
	must(t, err)
	want(1000, 42)
}
