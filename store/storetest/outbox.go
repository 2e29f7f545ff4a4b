package storetest

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
)

// sell promises n orders of one unit and returns them in id order.
func sell(t testing.TB, s Subject, sku string, n int) []sale.Order {
	t.Helper()
	takes := make([]sale.Take, n)
	for i := range takes {
		takes[i] = take(sku, buyer(i), 1, 10)
	}
	orders := make([]sale.Order, n)
	for i, d := range promise(t, s.DB, takes...) {
		if d.Outcome != sale.Promised {
			t.Fatalf("%+v", d)
		}
		orders[i] = d.Order
	}
	return orders
}

func ids(orders []sale.Order) []sale.OrderID {
	all := make([]sale.OrderID, len(orders))
	for i, o := range orders {
		all[i] = o.ID
	}
	return all
}

// age makes outbox rows look as if they had been stamped that much earlier.
func age(t testing.TB, s Subject, by time.Duration, orders ...sale.Order) {
	t.Helper()
	for _, o := range orders {
		_, err := s.Raw.Exec("UPDATE outbox SET sent_at = sent_at - ? WHERE id = ?", by.Milliseconds(), o.ID[:])
		must(t, err)
	}
}

func wantDepth(t testing.TB, s Subject, unsent, sent int64) {
	t.Helper()
	for state, want := range []int64{unsent, sent} { // as the rows number their states
		var n int64
		must(t, s.Raw.QueryRow("SELECT COUNT(*) FROM outbox WHERE state = ?", state).Scan(&n))
		if n != want {
			t.Fatalf("%d rows of state %d, want %d", n, state, want)
		}
	}
}

func claimNew(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 6)
	wantDepth(t, s, 6, 0)
	claim := func(olderThan time.Duration, limit int) []sale.Order {
		t.Helper()
		got, err := s.DB.ClaimNew(ctx, olderThan, limit)
		must(t, err)
		return got
	}
	if got := claim(time.Minute, 10); len(got) != 0 {
		t.Fatalf("claimed %d rows that are young", len(got))
	}
	age(t, s, 2*time.Minute, orders[1], orders[3], orders[5])
	age(t, s, time.Minute, orders[3])
	got := claim(time.Minute, 2)
	if len(got) != 2 || got[0] != orders[3] {
		t.Fatalf("claimed %+v, want the oldest two", got)
	}
	got = append(got, claim(time.Minute, 10)...)
	if !slices.Equal(sortedIDs(got), ids([]sale.Order{orders[1], orders[3], orders[5]})) {
		t.Fatalf("claimed %+v", got)
	}
	if again := claim(time.Minute, 10); len(again) != 0 {
		t.Fatalf("claimed again within the time: %+v", again)
	}
	if n := count(t, s, "SELECT COUNT(*) FROM outbox WHERE attempts = 1 AND node = 'node-1'"); n != 3 {
		t.Fatalf("%d rows bear the claim", n)
	}
	must(t, s.DB.MarkSent(ctx, ids(orders[:4])))
	must(t, s.DB.MarkSent(ctx, append(ids(orders[:2]), newID())))
	must(t, s.DB.MarkSent(ctx, nil))
	wantDepth(t, s, 2, 4)
	if got := claim(0, 10); !slices.Equal(sortedIDs(got), ids(orders[4:])) {
		t.Fatalf("claimed %+v, want what is not sent", got)
	}
	if n := count(t, s, "SELECT COUNT(*) FROM outbox WHERE state = 1 AND sent_at < created_at"); n != 0 {
		t.Fatalf("%d rows were sent before they were written", n)
	}
}

func sortedIDs(orders []sale.Order) []sale.OrderID {
	all := ids(orders)
	slices.SortFunc(all, func(a, b sale.OrderID) int { return slices.Compare(a[:], b[:]) })
	return all
}

func claimExclusive(t *testing.T, s Subject) {
	const orders, claimers = 400, 5
	newSKU(t, s.DB, "a", 10_000, 10)
	sold := sell(t, s, "a", orders)
	age(t, s, time.Hour, sold...)
	ctx := deadline(t)
	var mu sync.Mutex
	times := map[sale.OrderID]int{}
	together(claimers, func(int) {
		for {
			got, err := s.DB.ClaimNew(ctx, time.Minute, 7)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, o := range got {
				times[o.ID]++
			}
			all := len(times) == orders
			mu.Unlock()
			if all {
				return
			}
		}
	})
	for id, n := range times {
		if n != 1 {
			t.Errorf("order %s was claimed %d times at once", id, n)
		}
	}
}

func recheckSent(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 8)
	must(t, s.DB.MarkSent(ctx, ids(orders[:7])))
	refused, err := s.DB.InsertOrders(ctx, orders[:3])
	if err != nil || refused != nil {
		t.Fatal(refused, err)
	}
	recheck := func(wantDone, wantRenewed int) {
		t.Helper()
		done, renewed, err := s.DB.RecheckSent(ctx, time.Minute, 100)
		must(t, err)
		if done != wantDone || renewed != wantRenewed {
			t.Fatalf("%d done, %d renewed, want %d, %d", done, renewed, wantDone, wantRenewed)
		}
	}
	recheck(0, 0)
	age(t, s, 90*time.Second, orders[:5]...)
	recheck(3, 2)
	wantDepth(t, s, 3, 2)
	must(t, s.DB.MarkSent(ctx, ids(orders[:3]))) // a late confirm does not bring DONE rows back
	wantDepth(t, s, 3, 2)
	// The renewed ones are claimed at once, whatever age is asked for, and their next wait is doubled.
	again, err := s.DB.ClaimNew(ctx, time.Hour, 100)
	must(t, err)
	if !slices.Equal(sortedIDs(again), ids(orders[3:5])) {
		t.Fatalf("claimed %+v", again)
	}
	must(t, s.DB.MarkSent(ctx, ids(again)))
	age(t, s, 90*time.Second, orders[3:5]...)
	recheck(0, 0)
	age(t, s, 40*time.Second, orders[3])
	recheck(0, 1)
	// The wait stops growing.
	_, err = s.Raw.Exec("UPDATE outbox SET attempts = 1000000 WHERE id = ?", orders[4].ID[:])
	must(t, err)
	recheck(0, 0)
	age(t, s, 64*time.Minute, orders[4])
	recheck(0, 1)
}

func renewAll(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 1203) // more than one statement takes
	must(t, s.DB.MarkSent(ctx, ids(orders[:1102])))
	wantDepth(t, s, 101, 1102)
	n, err := s.DB.RenewAll(ctx)
	must(t, err)
	if n != len(orders) {
		t.Fatalf("%d renewed", n)
	}
	wantDepth(t, s, 1203, 0)
	seen := map[sale.OrderID]bool{}
	for {
		got, err := s.DB.ClaimNew(ctx, time.Hour, 10_000)
		must(t, err)
		if len(got) == 0 {
			break
		}
		for _, o := range got {
			seen[o.ID] = true
		}
	}
	if want := ids(orders); len(seen) != len(want) || !seen[want[0]] || !seen[want[1202]] {
		t.Fatalf("%d claimed after the renewal", len(seen))
	}
}

func notices(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 4)
	for _, o := range orders {
		_, err := s.DB.InsertOrders(ctx, []sale.Order{o})
		must(t, err)
	}
	claim := func(olderThan time.Duration, limit int) []sale.Notice {
		t.Helper()
		got, err := s.DB.ClaimNotices(ctx, olderThan, limit)
		must(t, err)
		return got
	}
	first := claim(time.Minute, 3)
	if len(first) != 3 {
		t.Fatalf("%d claimed", len(first))
	}
	for i, n := range first {
		want := orders[i]
		want.State = sale.OrderCreated
		if n.Topic != sale.TopicCreated || len(n.Orders) != 1 || n.Orders[0] != want {
			t.Fatalf("notice %+v, want %+v", n, want)
		}
	}
	second := claim(time.Minute, 10)
	if len(second) != 1 || len(claim(time.Minute, 10)) != 0 {
		t.Fatalf("%d claimed, and more to come", len(second))
	}
	must(t, s.DB.DeleteNotices(ctx, []int64{first[0].Seq, first[2].Seq, 1 << 40}))
	must(t, s.DB.DeleteNotices(ctx, nil))
	rest := claim(0, 10)
	if len(rest) != 2 || rest[0].Seq != first[1].Seq || rest[1].Seq != second[0].Seq {
		t.Fatalf("left: %+v", rest)
	}

	// Two claimers never get the same notice at once.
	more := sell(t, s, "a", 60)
	for _, o := range more {
		_, err := s.DB.InsertOrders(ctx, []sale.Order{o})
		must(t, err)
	}
	var mu sync.Mutex
	times := map[int64]int{}
	together(4, func(int) {
		for range 20 {
			got, err := s.DB.ClaimNotices(ctx, time.Minute, 2)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, n := range got {
				times[n.Seq]++
			}
			mu.Unlock()
		}
	})
	if m := slices.Max(slices.Collect(maps.Values(times))); len(times) != len(more) || m != 1 {
		t.Errorf("%d of %d claimed, one of them %d times", len(times), len(more), m)
	}
}

func books(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 2)
	orders := sell(t, s, "a", 5)
	_, err := s.DB.InsertOrders(ctx, orders[:3])
	must(t, err)
	stranger := orders[0]
	stranger.ID = newID()
	_, err = s.DB.InsertOrders(ctx, []sale.Order{stranger})
	must(t, err)
	closeOrder(t, s, orders[4], "CANCELLED")
	wantOutcomes(t, promise(t, s.DB, take("a", "greedy", 3, 10)), sale.Promised) // the take's limit counts
	want := sale.Books{
		Total: 100, Promised: 7, LiveUnits: 7, LiveOrders: 5, Orders: 4, Unpaid: 4, Missing: 2, Strangers: 1,
		OverLimit: 1,
	}
	if b, err := s.DB.Books(ctx, "a"); err != nil || b != want {
		t.Fatalf("books %+v, %v, want %+v", b, err, want)
	}
	if _, err := s.DB.Books(ctx, "none"); err == nil {
		t.Fatal("books of no SKU")
	}
}
