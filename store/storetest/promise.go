package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

func promiseOutcomes(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 5, 3)
	first := take("a", "u1", 2, 2)
	before := time.Now().UTC().Add(-time.Minute)

	d := promise(t, s.DB, first)
	wantOutcomes(t, d, sale.Promised)
	o := d[0].Order
	want := sale.Order{
		ID: first.Order, SKU: "a", Buyer: "u1", Quantity: 2, State: sale.OrderQueued,
		AcceptedAt: o.AcceptedAt, ExpiresAt: o.AcceptedAt.Add(15 * time.Minute),
	}
	if o != want || o.AcceptedAt.Location() != time.UTC || o.AcceptedAt.Truncate(time.Millisecond) != o.AcceptedAt {
		t.Fatalf("promised %+v, want %+v in UTC and whole milliseconds", o, want)
	}
	if o.AcceptedAt.Before(before) || o.AcceptedAt.After(before.Add(2*time.Minute)) {
		t.Fatalf("accepted at %v, not about now", o.AcceptedAt)
	}

	moved := first
	moved.Share = sale.Reserve
	old := take("a", "u2", 1, 2)
	old.Epoch = 7
	other := take("a", "u3", 1, 2)
	other.Mode = "mysql"
	d = promise(t, s.DB,
		first,                   // asked again
		take("a", "u1", 1, 2),   // over the limit with what u1 holds
		old,                     // another epoch
		take("a", "u4", 3, 3),   // all that is left
		take("a", "u5", 1, 2),   // nothing is left
		take("no", "u6", 1, 2),  // no such SKU
		take("a", "u7", 0, 2),   // would move the ledger the wrong way
		other,                   // another path
		take("a", "u8", -1, 10), // likewise
	)
	wantOutcomes(t, d, sale.Found, sale.OverLimit, sale.Fenced, sale.Promised, sale.Short, sale.Rejected, sale.Rejected,
		sale.Fenced, sale.Rejected)
	if d[0].Order != o || d[1].Live != 2 || d[4].Available != 0 || !errors.Is(d[5].Err, sale.ErrNotFound) ||
		d[6].Err == nil {
		t.Fatalf("decisions tell %+v", d)
	}
	d = promise(t, s.DB, moved)
	wantOutcomes(t, d, sale.FoundElse)
	if d[0].Order != o {
		t.Fatalf("found %+v, want %+v", d[0].Order, o)
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != 5 || b.LiveOrders != 2 {
		t.Fatalf("books %+v", b)
	}
}

// Short takes leave in id order, as few as possible, and one that is over the limit takes no units from the next.
func manySKUs(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 4, 3)
	newSKU(t, s.DB, "b", 100, 3)
	newSKU(t, s.DB, "c", 0, 3)
	takes := []sale.Take{
		take("b", "u1", 3, 3),
		take("a", "u1", 3, 3),
		take("c", "u1", 1, 3), // short
		take("a", "u1", 1, 3), // over the limit: leaves its unit to the next
		take("a", "u2", 3, 3), // short, one is left
		take("a", "u3", 1, 3),
		take("b", "u1", 1, 3), // over the limit
		take("b", "u2", 3, 3),
		take("a", "u4", 1, 3), // short, nothing is left
	}
	d := promise(t, s.DB, takes...)
	wantOutcomes(t, d, sale.Promised, sale.Promised, sale.Short, sale.OverLimit, sale.Short, sale.Promised, sale.OverLimit,
		sale.Promised, sale.Short)
	if d[4].Available != 1 || d[8].Available != 0 || d[3].Live != 3 {
		t.Fatalf("decisions tell %+v", d)
	}
	for sku, promised := range map[string]int64{"a": 4, "b": 6, "c": 0} {
		if b := wantBooks(t, s.DB, sku); b.Promised != promised {
			t.Fatalf("%s: books %+v, want %d promised", sku, b, promised)
		}
	}
}

func sameOrderTwice(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 10, 5)
	one := take("a", "u1", 1, 5)
	elsewhere := one
	elsewhere.Share, elsewhere.Token.Change = sale.Reserve, one.Token.Change+1_000_000
	d := promise(t, s.DB, one, elsewhere, one)
	wantOutcomes(t, d, sale.Promised, sale.FoundElse, sale.Found)
	if d[1].Order != d[0].Order || d[2].Order != d[0].Order {
		t.Fatalf("three answers about one order: %+v", d)
	}
	// The same against the row that is there now.
	wantOutcomes(t, promise(t, s.DB, elsewhere, one, elsewhere), sale.FoundElse, sale.Found, sale.FoundElse)

	// A refused order that comes twice as the same take is refused twice; a different take was not looked at.
	big := take("a", "u2", 50, 50)
	small := big
	small.Quantity = 1
	d = promise(t, s.DB, big, big, small)
	wantOutcomes(t, d, sale.Short, sale.Short, sale.NotTaken)
	if d[2].Err == nil {
		t.Fatal("not taken without a reason")
	}
	wantOutcomes(t, promise(t, s.DB, small), sale.Promised)
	if b := wantBooks(t, s.DB, "a"); b.Promised != 2 {
		t.Fatalf("books %+v", b)
	}
}

func foundRows(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 10, 5)
	newSKU(t, s.DB, "b", 10, 5)
	one := take("a", "u1", 2, 5)
	d := promise(t, s.DB, one)
	wantOutcomes(t, d, sale.Promised)
	stored := d[0].Order
	for name, change := range map[string]func(*sale.Take){
		"share":  func(k *sale.Take) { k.Share = 3 },
		"change": func(k *sale.Take) { k.Token.Change++ },
		"epoch":  func(k *sale.Take) { k.Token.Epoch++ },
	} {
		other := one
		change(&other)
		if d := promise(t, s.DB, other); d[0].Outcome != sale.FoundElse || d[0].Order != stored {
			t.Errorf("%s differs: %+v", name, d[0])
		}
	}
	for name, change := range map[string]func(*sale.Take){
		"quantity":  func(k *sale.Take) { k.Quantity = 1 },
		"buyer":     func(k *sale.Take) { k.Buyer = "u2" },
		"sku":       func(k *sale.Take) { k.SKU = "b" },
		"old epoch": func(k *sale.Take) { k.Epoch = 99 },
		"limit":     func(k *sale.Take) { k.Limit = 1 },
	} {
		other := one
		change(&other)
		if d := promise(t, s.DB, other); d[0].Outcome != sale.Found || d[0].Order != stored {
			t.Errorf("%s differs: %+v", name, d[0])
		}
	}
	closeOrder(t, s, stored, "PAYMENT_TIMEOUT")
	d = promise(t, s.DB, one, take("a", "u1", 5, 5))
	wantOutcomes(t, d, sale.Found, sale.Promised) // closed orders count for no limit, and are still known
	if o := d[0].Order; o.State != sale.OrderClosed || o.Reason != "PAYMENT_TIMEOUT" || o.ID != one.Order {
		t.Fatalf("a closed order was found as %+v", o)
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != 5 {
		t.Fatalf("books %+v", b)
	}
}

func bisects(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 1000, 5)
	var takes []sale.Take
	for i := range 40 {
		takes = append(takes, take("a", buyer(i), 1, 5))
	}
	bad := []int{0, 17, 18, 39}
	for _, i := range bad {
		takes[i].Buyer = strings.Repeat("x", sale.MaxBuyerID+1+i)
	}
	d := promise(t, s.DB, takes...)
	for i := range takes {
		want := sale.Promised
		if slices.Contains(bad, i) {
			want = sale.Rejected
		}
		if d[i].Outcome != want || (want == sale.Rejected) != (d[i].Err != nil) {
			t.Errorf("take %d: %+v, want %v", i, d[i], want)
		}
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != 36 || b.LiveOrders != 36 {
		t.Fatalf("books %+v", b)
	}
}

func splits(t *testing.T, s Subject) {
	const n = 1203
	newSKU(t, s.DB, "a", n-3, 5)
	var takes []sale.Take
	for i := range n {
		takes = append(takes, take("a", buyer(i), 1, 5))
	}
	slices.Reverse(takes) // answers come in the caller's order, whatever the order of work
	d := promise(t, s.DB, takes...)
	for i := range d {
		want := sale.Promised
		if i < 3 {
			want = sale.Short
		}
		if d[i].Outcome != want || (want == sale.Promised && d[i].Order.ID != takes[i].Order) {
			t.Fatalf("take %d: %+v, want %v", i, d[i], want)
		}
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != n-3 {
		t.Fatalf("books %+v", b)
	}
}

func endedContext(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 10, 5)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	takes := []sale.Take{take("a", "u1", 1, 5), take("a", "u2", 1, 5)}
	d := s.DB.Promise(ctx, takes)
	wantOutcomes(t, d, sale.NotTaken, sale.NotTaken)
	if !errors.Is(d[0].Err, context.Canceled) {
		t.Fatalf("not taken because of %v", d[0].Err)
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != 0 {
		t.Fatalf("books %+v", b)
	}
	wantOutcomes(t, promise(t, s.DB, takes...), sale.Promised, sale.Promised)
}
