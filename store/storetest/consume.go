package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"stockade/biz/sale"
)

// news reads and deletes all notices and returns the ids they tell of, in order.
func news(t *testing.T, s Subject) []sale.OrderID {
	t.Helper()
	var told []sale.Order
	for {
		got, err := s.DB.ClaimNotices(t.Context(), 0, 100)
		must(t, err)
		if len(got) == 0 {
			return sortedIDs(told)
		}
		var done []int64
		for _, n := range got {
			told = append(told, n.Orders...)
			done = append(done, n.Seq)
		}
		must(t, s.DB.DeleteNotices(t.Context(), done))
	}
}

func insertOrders(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 1203) // several statements, one transaction
	insert := func(which []sale.Order, want ...sale.OrderID) {
		t.Helper()
		refused, err := s.DB.InsertOrders(ctx, which)
		if err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		if got := news(t, s); !slices.Equal(got, want) {
			t.Fatalf("%d announced, want %d", len(got), len(want))
		}
	}
	backwards := slices.Clone(orders[:1100])
	slices.Reverse(backwards)
	insert(backwards, ids(orders[:1100])...)
	insert(orders[:5])
	insert(nil)
	insert([]sale.Order{orders[1100], orders[3], orders[1101], orders[1100]}, ids(orders[1100:1102])...)
	for _, o := range []sale.Order{orders[0], orders[1101]} {
		got, err := s.DB.Order(ctx, o.Buyer, o.ID)
		o.State = sale.OrderCreated
		if err != nil || got != o {
			t.Fatalf("order %+v, %v, want %+v", got, err, o)
		}
	}
	if b := wantBooks(t, s.DB, "a"); b.Orders != 1102 || b.Missing != 101 || b.Strangers != 0 {
		t.Fatalf("books %+v", b)
	}
	wantDepth(t, s, 1203, 0) // it is the relay's and the sweeper's to move outbox rows
}

func insertPoison(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 10)
	_, err := s.DB.InsertOrders(ctx, orders[4:5])
	must(t, err)
	if got := news(t, s); len(got) != 1 {
		t.Fatalf("%d announced", len(got))
	}
	batch := slices.Clone(orders)
	slices.Reverse(batch)
	long, zero, huge := 1, 6, 9 // positions in batch
	batch[long].Buyer = strings.Repeat("x", 300)
	batch[zero].Quantity = 0
	batch[huge].Quantity = 1 << 40
	for range 2 {
		refused, err := s.DB.InsertOrders(ctx, batch)
		must(t, err)
		if len(refused) != len(batch) {
			t.Fatalf("%d answers for %d orders", len(refused), len(batch))
		}
		for i, why := range refused {
			if poison := i == long || i == zero || i == huge; poison != (why != nil) {
				t.Errorf("order %d: %v", i, why)
			}
		}
	}
	var want []sale.OrderID
	for i, o := range orders {
		if at := len(orders) - 1 - i; at != long && at != zero && at != huge && i != 4 {
			want = append(want, o.ID)
		}
	}
	if got := news(t, s); !slices.Equal(got, want) {
		t.Fatalf("announced %d, want %d", len(got), len(want))
	}
	if n := count(t, s, "SELECT COUNT(*) FROM orders"); n != 7 {
		t.Fatalf("%d rows", n)
	}
}

// A large batch of which some orders exist, some come twice and some cannot be written.
func insertMixed(t *testing.T, s Subject) {
	const size = 600
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", size)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	batch := slices.Clone(orders)
	rng.Shuffle(size, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	_, err := s.DB.InsertOrders(ctx, batch[:size/3])
	must(t, err)
	news(t, s)
	var want []sale.Order
	poison := map[int]bool{}
	for i := size / 3; i < size; i++ {
		if rng.IntN(50) == 0 {
			batch[i].Quantity = 0
			poison[i] = true
			continue
		}
		want = append(want, batch[i])
	}
	batch = append(batch, want[:20]...) // the same again
	refused, err := s.DB.InsertOrders(ctx, batch)
	must(t, err)
	for i := range batch {
		if got := refused != nil && refused[i] != nil; got != poison[i] {
			t.Errorf("order %d of %d: refused %v, want %v", i, len(batch), got, poison[i])
		}
	}
	if got := news(t, s); !slices.Equal(got, sortedIDs(want)) {
		t.Errorf("%d announced, want each of %d once", len(got), len(want))
	}
	if n := count(t, s, "SELECT COUNT(*) FROM orders"); n != int64(size-len(poison)) {
		t.Errorf("%d rows, want %d", n, size-len(poison))
	}
}

// Consumers that get the same envelope at once write and announce each order once.
func insertRace(t *testing.T, s Subject) {
	const consumers = 4
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10_000, 10)
	orders := sell(t, s, "a", 120)
	var mu sync.Mutex
	var errs []error
	together(consumers, func(c int) {
		mine := slices.Clone(orders)
		if c%2 == 1 {
			slices.Reverse(mine)
		}
		for _, part := range [][]sale.Order{mine[:40], mine[30:90], mine[60:]} {
			refused, err := s.DB.InsertOrders(ctx, part)
			if err != nil || refused != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		}
	})
	if err := errors.Join(errs...); err != nil || len(errs) > 0 {
		t.Fatal(err)
	}
	if got := news(t, s); !slices.Equal(got, ids(orders)) {
		t.Fatalf("%d announced, want each of %d once", len(got), len(orders))
	}
	if b := wantBooks(t, s.DB, "a"); b.Orders != 120 || b.Missing != 0 {
		t.Fatalf("books %+v", b)
	}
}

func orderStates(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	o := sell(t, s, "a", 1)[0]
	want := func(state sale.OrderState, reason sale.Reason) {
		t.Helper()
		expect := o
		expect.State, expect.Reason = state, reason
		if got, err := s.DB.Order(ctx, o.Buyer, o.ID); err != nil || got != expect {
			t.Fatalf("order %+v, %v, want %+v", got, err, expect)
		}
	}
	want(sale.OrderQueued, "")
	for name, ask := range map[string]func() (sale.Order, error){
		"another buyer": func() (sale.Order, error) { return s.DB.Order(ctx, o.Buyer+" ", o.ID) },
		"another id":    func() (sale.Order, error) { return s.DB.Order(ctx, o.Buyer, newID()) },
	} {
		if got, err := ask(); !errors.Is(err, sale.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	closeOrder(t, s, o, sale.ReasonCompensated)
	want(sale.OrderClosed, sale.ReasonCompensated)
	_, err := s.DB.InsertOrders(ctx, []sale.Order{o})
	must(t, err)
	want(sale.OrderCreated, "") // the order row is the later news
	for state, number := range map[sale.OrderState]int{sale.OrderPaid: 2, sale.OrderClosed: 3} {
		_, err := s.Raw.Exec("UPDATE orders SET state = ?, reason = 'R'", number)
		must(t, err)
		want(state, "R")
	}
}

func ordersOf(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 100)
	var mine []sale.Order
	for range 5 {
		d := promise(t, s.DB, take("a", "me", 1, 100), take("a", "me ", 1, 100))
		_, err := s.DB.InsertOrders(ctx, []sale.Order{d[0].Order, d[1].Order})
		must(t, err)
		mine = append(mine, d[0].Order)
	}
	var got []sale.Order
	for after := (sale.OrderID{}); ; after = got[len(got)-1].ID {
		page, err := s.DB.OrdersOf(ctx, "me", after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	for i := range mine {
		mine[i].State = sale.OrderCreated
	}
	if !slices.Equal(got, mine) {
		t.Fatalf("orders %+v, want %+v", got, mine)
	}
}
