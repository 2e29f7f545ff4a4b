package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// bookOrders makes n CREATED orders of one unit each without going through the gate, which a full reshare then learns of.
func (s *till) bookOrders(t *testing.T, node *testNode, sku string, n int, window time.Duration) []sale.Order {
	t.Helper()
	orders := s.promiseOrders(t, sku, n, window)
	for group := range slices.Chunk(orders, 500) {
		if err := s.write(t.Context(), group...); err != nil {
			t.Fatal(err)
		}
	}
	s.layOut(t, node, sku)
	return orders
}

// layOut has the gate learn of everything.
func (s *till) layOut(t *testing.T, node *testNode, sku string) {
	t.Helper()
	if err := node.resharer.Run(t.Context(), sku, service.ReshareOrder{Reason: "booked", Full: true}); err != nil {
		t.Fatal(err)
	}
	node.catalogue.Forget(sku)
}

// promiseOrders makes n QUEUED orders of one unit each, of which the gate knows nothing.
func (s *till) promiseOrders(t *testing.T, sku string, n int, window time.Duration) []sale.Order {
	t.Helper()
	listing, err := s.lab.db.Listing(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	var orders []sale.Order
	for start := 0; start < n; start += 500 {
		var takes []sale.Take
		for i := start; i < min(n, start+500); i++ {
			buyer := fmt.Sprint("booked-", i)
			takes = append(takes, sale.Take{
				Order: sale.DeriveOrderID(sku, buyer, "k"), SKU: sku, Buyer: buyer, Quantity: 1, Limit: 1,
				Token: sale.Token{Epoch: listing.Ledger.LiveEpoch, Change: int64(i + 1)}, Epoch: listing.Ledger.LiveEpoch,
				Mode: listing.Ledger.Mode, Window: window,
			})
		}
		for _, d := range s.lab.db.Promise(t.Context(), takes) {
			if d.Outcome != sale.Promised {
				t.Fatalf("promise: %+v", d)
			}
			orders = append(orders, d.Order)
		}
	}
	return orders
}

// raceSpread is how long payments keep coming around the end of their windows.
const raceSpread = 200 * time.Millisecond

// verdicts are what payments of one order were told.
type verdicts struct {
	mu   sync.Mutex
	told [2]sale.ChangeOutcome
}

// Payments race the expiry of their orders, each twice: an order ends PAID or CLOSED, everybody is told the same, and
// the stock is right.
func TestPaymentsRaceExpiry(t *testing.T) {
	l := newLab(t)
	paymentsRaceExpiry(t, l, 1000, sale.DefaultWindow, func(expires time.Time) {
		l.clock.advance(expires.Sub(l.clock.Now()) + time.Millisecond)
	})
}

// paymentsRaceExpiry calls passed when a third of the payments are on their way; it returns when the windows have ended,
// or are about to.
func paymentsRaceExpiry(t *testing.T, l *lab, orders int, window time.Duration, passed func(expires time.Time)) {
	l.config.ExpiryPerSecond, l.config.SettleTimeoutMs, l.config.ChangeTimeoutMs = 1_000_000, 60_000, 60_000
	s, n, sku := openTillIn(t, l, int64(orders)+100, sale.SKU{Limit: 1, Slots: 4, ReservePct: 5})
	booked := s.bookOrders(t, n, sku.ID, orders, window)
	ids := make([]sale.OrderID, orders)
	for i, o := range booked {
		ids[i] = o.ID
	}
	told := make([]verdicts, orders)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var loops, payments sync.WaitGroup
	loops.Go(func() { s.creditor.Run(ctx) })
	loops.Go(func() {
		for ctx.Err() == nil {
			if err := s.expirer.Round(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("expiry: %v", err)
			}
		}
	})
	end := sync.OnceFunc(func() { passed(booked[orders-1].ExpiresAt) })
	for try := range 2 {
		rng := rand.New(rand.NewPCG(seed, uint64(try)))
		payments.Go(func() {
			var each sync.WaitGroup
			for i := range ids {
				if i == orders/3 { // a third is paid before the windows end
					end()
				}
				spread := time.Duration(0)
				if i >= orders/3 {
					spread = time.Duration(rng.IntN(int(raceSpread)))
				}
				each.Go(func() {
					<-time.After(spread) // to meet the expiry now before and now after it; the result may be either
					done, err := s.settler.Pay(ctx, ids[i], fmt.Sprint(sku.ID, "-", i))
					if err != nil {
						t.Errorf("payment %d: %v", i, err)
					}
					told[i].mu.Lock()
					told[i].told[try] = done.Outcome
					told[i].mu.Unlock()
				})
			}
			each.Wait()
		})
		payments.Go(func() { // timeout messages, each delivered twice
			for part := range slices.Chunk(ids, 100) {
				if err := s.expirer.Expire(ctx, part); err != nil {
					t.Errorf("expire: %v", err)
				}
			}
		})
	}
	payments.Wait()
	await(t, "no order is open", func() bool {
		books, err := l.db.Books(ctx, sku.ID)
		return err == nil && books.Unpaid == 0
	})
	paid, closed := 0, 0
	for i, id := range ids {
		o, err := s.settler.AnyOrder(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		good := map[sale.OrderState][]sale.ChangeOutcome{
			sale.OrderPaid:   {sale.Changed, sale.Already},
			sale.OrderClosed: {sale.RefundRequired},
		}[o.State]
		for _, outcome := range told[i].told {
			if !slices.Contains(good, outcome) {
				t.Errorf("order %d is %s, its payments were told %v", i, o.State, told[i].told)
			}
		}
		switch o.State {
		case sale.OrderPaid:
			paid++
		case sale.OrderClosed:
			closed++
		}
	}
	t.Logf("%d paid, %d closed", paid, closed)
	if paid+closed != orders || paid == 0 || closed == 0 {
		t.Errorf("%d paid and %d closed of %d", paid, closed, orders)
	}
	stop()
	loops.Wait()
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
	wantRefunds(t, l, closed)
}

// awaitDue polls until so many orders are due by the clock of the database.
func (l *lab) awaitDue(t *testing.T, orders int) {
	t.Helper()
	await(t, fmt.Sprint(orders, " orders are due"), func() bool {
		due, err := l.db.Due(t.Context(), orders+1)
		return err == nil && len(due) == orders
	})
}

// wantRefunds checks that each late payment was told to the world once.
func wantRefunds(t *testing.T, l *lab, want int) {
	t.Helper()
	seen := map[string]int{}
	for {
		notices, err := l.db.ClaimNotices(t.Context(), 0, 500)
		if err != nil {
			t.Fatal(err)
		}
		var seqs []int64
		for _, notice := range notices {
			seqs = append(seqs, notice.Seq)
			if notice.Topic == sale.TopicRefundRequired {
				seen[notice.Payment]++
			}
		}
		if len(seqs) == 0 {
			break
		}
		if err := l.db.DeleteNotices(t.Context(), seqs); err != nil {
			t.Fatal(err)
		}
	}
	for payment, times := range seen {
		if times != 1 {
			t.Errorf("the refund of %s was asked for %d times", payment, times)
		}
	}
	if len(seen) != want {
		t.Errorf("%d refunds were asked for, want %d", len(seen), want)
	}
}

// A great many orders that are due at once are closed while others buy, and the buyers hardly notice.
func manyOrdersExpire(t *testing.T, l *lab, orders int, window, bound time.Duration, passed func(expires time.Time)) {
	s, n, sku := openTillIn(t, l, int64(orders)+100, sale.SKU{Limit: 1, Slots: 4, ReservePct: 5})
	other, err := l.newSKU(t.Context(), n, 100_000, sale.SKU{Limit: 1, Slots: 4, OpensAt: l.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	booked := s.bookOrders(t, n, sku.ID, orders, window)
	passed(booked[orders-1].ExpiresAt)
	l.awaitDue(t, orders)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var loops sync.WaitGroup
	loops.Go(func() { s.creditor.Run(ctx) })
	closing := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		if err := s.expirer.Round(ctx); err != nil {
			t.Errorf("expiry: %v", err)
		}
		closing <- time.Since(began)
	}()
	var waits []time.Duration
	var took time.Duration
	for i := 0; took == 0; i++ {
		began := time.Now()
		if _, err := s.buy(ctx, n, other.ID, fmt.Sprint("buyer-", i), "k", 1, false); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, time.Since(began))
		select {
		case took = <-closing:
		default:
		}
	}
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	t.Logf("%d orders closed in %v, meanwhile %d purchases, p50 %v, p99 %v", orders, took, len(waits), waits[len(waits)/2], p99)
	if p99 > bound {
		t.Errorf("p99 of the purchases is %v, want at most %v", p99, bound)
	}
	if least := time.Duration(orders-l.config.SettleGroup) * time.Second / time.Duration(l.config.ExpiryPerSecond); took < least {
		t.Errorf("closed in %v: faster than the rate of %d per second allows", took, l.config.ExpiryPerSecond)
	}
	stop()
	loops.Wait()
	await(t, "the writer is idle", func() bool { return n.writer.Unfinished() == 0 })
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
	s.mustBalance(t, other.ID)
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || listing.Ledger.Promised != 0 {
		t.Errorf("promised %d, %v", listing.Ledger.Promised, err)
	}
}
