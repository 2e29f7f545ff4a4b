package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
)

// settleRace is what several settlers of the same orders were answered.
type settleRace struct {
	t   *testing.T
	s   Subject
	ctx context.Context

	mu      sync.Mutex
	changed map[sale.OrderID]int
	paidBy  map[sale.OrderID]string // payment that was taken
	refunds map[string]int          // payments answered with RefundRequired
	restock map[sale.OrderID]sale.Restock
}

// all asks for one kind of change of every order, in batches of a random order, until each is decided.
func (r *settleRace) all(seed uint64, orders []sale.Order, of func(sale.Order) sale.Change) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var open []sale.Change
	for _, o := range orders {
		open = append(open, of(o))
	}
	for len(open) > 0 {
		rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		n := min(len(open), 1+rng.IntN(60))
		var again []sale.Change
		for i, g := range r.s.DB.Settle(r.ctx, open[:n]) {
			if !r.note(open[i], g) {
				again = append(again, open[i])
			}
		}
		open = append(open[n:], again...)
		if r.ctx.Err() != nil {
			r.t.Errorf("%d changes are undecided", len(open))
			return
		}
	}
}

// note tells whether the answer is final.
func (r *settleRace) note(c sale.Change, g sale.Settled) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch g.Outcome {
	case sale.Changed:
		r.changed[c.Order]++
		if c.Kind == sale.Pay {
			r.paidBy[c.Order] = c.Payment
		} else {
			r.restock[c.Order] = *g.Restock
		}
	case sale.RefundRequired:
		r.refunds[c.Payment]++
	case sale.Already, sale.IsPaid:
	case sale.StillQueued, sale.NotChanged: // a queued order is compensated or written in the end
		return false
	default:
		r.t.Errorf("change %+v: %+v", c, g)
	}
	return true
}

// Payments, expiries, cancels and compensations of the same orders meet, while consumers write the last of them, other
// orders are promised, and reshares follow each other.
func settlementRace(t *testing.T, s Subject) {
	const known, queued = 150, 50
	newSKU(t, s.DB, "a", 1_000_000, 1000)
	orders := written(t, s, "a", known)
	expire(t, s, orders...)
	late := sell(t, s, "a", queued)
	for i := range late { // the messages of the late ones say so as well
		late[i].ExpiresAt = late[i].AcceptedAt.Add(-time.Millisecond)
	}
	expire(t, s, late...)
	orders = append(orders, late...)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := &settleRace{
		t: t, s: s, ctx: deadline(t),
		changed: map[sale.OrderID]int{}, paidBy: map[sale.OrderID]string{}, refunds: map[string]int{},
		restock: map[sale.OrderID]sale.Restock{},
	}
	around, stop := context.WithCancel(r.ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	seen := map[int64]map[sale.OrderID]bool{} // closed orders in the snapshot of each epoch
	others.Go(func() { r.reshares(around, seen) })
	others.Go(func() { r.promises(around) })
	others.Go(func() { r.watch(around) })

	payment := func(n int) func(sale.Order) sale.Change {
		return func(o sale.Order) sale.Change { return pay(o, fmt.Sprintf("%s/%d", o.ID, n)) }
	}
	work := []func(){
		func() { r.all(seed, orders, payment(1)) },
		func() { r.all(seed+1, orders, payment(1)) },
		func() { r.all(seed+2, orders, payment(2)) },
		func() { r.all(seed+3, orders, expiry) },
		func() { r.all(seed+4, orders, expiry) },
		func() { r.all(seed+5, orders, cancel) },
		func() { r.all(seed+6, late, compensation) },
		func() {
			for i := 0; i < len(late); i += 10 {
				if refused, err := s.DB.InsertOrders(r.ctx, late[i:i+10]); err != nil || refused != nil {
					t.Error(refused, err)
				}
			}
		},
	}
	together(len(work), func(i int) { work[i]() })
	stop()
	others.Wait()
	r.verify(orders, seen)
	wantSettlement(t, s, "a")
	wantBooks(t, s.DB, "a")
}

func (r *settleRace) verify(orders []sale.Order, seen map[int64]map[sale.OrderID]bool) {
	t, s := r.t, r.s
	for _, o := range orders {
		now, err := s.DB.Order(r.ctx, o.Buyer, o.ID)
		must(t, err)
		_, paid := r.paidBy[o.ID]
		stock, closed := r.restock[o.ID]
		if r.changed[o.ID] != 1 || paid == closed || paid != (now.State == sale.OrderPaid) ||
			closed != (now.State == sale.OrderClosed) {
			t.Errorf("order %+v was changed %d times, paid %v, closed %v", now, r.changed[o.ID], paid, closed)
		}
		if !closed {
			continue
		}
		for epoch, snapshot := range seen {
			if snapshot[o.ID] != (stock.Epoch < epoch) {
				t.Errorf("order %s, restock at epoch %d: in the snapshot of epoch %d as closed: %v",
					o.ID, stock.Epoch, epoch, snapshot[o.ID])
			}
		}
		if n := count(t, s, "SELECT epoch FROM restock WHERE order_id = ?", o.ID[:]); n != stock.Epoch {
			t.Errorf("order %s: the restock row says epoch %d, the answer %d", o.ID, n, stock.Epoch)
		}
	}
	told := map[string]int{}
	closings := map[sale.OrderID]int{}
	for _, n := range notes(t, s) {
		for _, o := range n.Orders {
			if n.Topic == sale.TopicRefundRequired {
				told[n.Payment]++
			} else if n.Topic != sale.TopicCreated {
				closings[o.ID]++
			}
		}
	}
	if len(told) != len(r.refunds) {
		t.Errorf("%d payments are to be refunded, %d were announced", len(r.refunds), len(told))
	}
	for p, n := range told {
		if n != 1 || r.refunds[p] == 0 {
			t.Errorf("the refund of %s was announced %d times and answered %d times", p, n, r.refunds[p])
		}
	}
	for _, o := range orders {
		if closings[o.ID] != 1 {
			t.Errorf("order %s was announced as paid or closed %d times", o.ID, closings[o.ID])
		}
	}
}

// reshares follow each other and keep the closed orders of each snapshot.
func (r *settleRace) reshares(ctx context.Context, seen map[int64]map[sale.OrderID]bool) {
	for epoch := int64(2); ctx.Err() == nil; epoch++ {
		snap, err := r.s.DB.BeginReshare(r.ctx, "a", epoch-1, sale.LedgerChange{})
		if err != nil {
			r.t.Error(err)
			return
		}
		closed, units := map[sale.OrderID]bool{}, int64(0)
		page, err := snap.Holdings(r.ctx, 0, 1_000_000)
		for _, h := range page {
			if h.Closed {
				closed[h.Order] = true
			} else {
				units += h.Quantity
			}
		}
		if l := snap.Listing().Ledger; err != nil || l.Promised != units || l.Epoch != epoch {
			r.t.Errorf("the snapshot holds %d live units, %v; its ledger says %+v", units, err, l)
		}
		seen[epoch] = closed
		if err := snap.Close(); err != nil {
			r.t.Error(err)
		}
		if err := r.s.DB.FinishReshare(r.ctx, "a", epoch, false, ""); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *settleRace) promises(ctx context.Context) {
	epoch := int64(1)
	for n := 0; ctx.Err() == nil; n++ {
		k := take("a", fmt.Sprintf("other-%d", n), 1, 10)
		k.Epoch = epoch
		switch d := r.s.DB.Promise(r.ctx, []sale.Take{k})[0]; d.Outcome {
		case sale.Promised, sale.NotTaken:
		case sale.Fenced:
			l, err := r.s.DB.Listing(r.ctx, "a")
			if err != nil {
				r.t.Error(err)
				return
			}
			epoch = l.Ledger.LiveEpoch
		default:
			r.t.Errorf("promise: %+v", d)
		}
	}
}

// watch sees the ledger's changes grow only.
func (r *settleRace) watch(ctx context.Context) {
	for last := int64(0); ctx.Err() == nil; {
		l, err := r.s.DB.Listing(r.ctx, "a")
		if err != nil || l.Ledger.Changes < last {
			r.t.Errorf("changes %d after %d: %v", l.Ledger.Changes, last, err)
			return
		}
		last = l.Ledger.Changes
	}
}

func dueInBulk(t *testing.T, s Subject) { DueInBulk(t, s, 2000) }

// DueInBulk lets n orders fall due in the same second: they are closed in batches, within seconds, while purchases go on.
func DueInBulk(t *testing.T, s Subject, n int64) {
	const page, bound = 500, 20 * time.Second
	newSKU(t, s.DB, "a", n+1000, 10)
	orders := written(t, s, "a", int(n))
	_, err := s.Raw.Exec("UPDATE orders SET expires_at = accepted_at - 1")
	must(t, err)
	ctx := deadline(t)
	if few, err := s.DB.Due(ctx, 7); err != nil || len(few) != 7 {
		t.Fatal(few, err)
	}
	selling, stop := context.WithCancel(ctx)
	var sold atomic.Int64
	var seller sync.WaitGroup
	seller.Go(func() {
		for i := 0; selling.Err() == nil && i < 1000; i++ {
			if d := s.DB.Promise(ctx, []sale.Take{take("a", fmt.Sprintf("p-%d", i), 1, 10)}); d[0].Outcome != sale.Promised {
				t.Errorf("promise: %+v", d[0])
			}
			sold.Add(1)
		}
	})
	before := s.Faults.passed(sale.SettlementWritten)
	start, closed := time.Now(), 0
	for {
		due, err := s.DB.Due(ctx, page)
		must(t, err)
		if len(due) == 0 {
			break
		}
		var changes []sale.Change
		for _, id := range due {
			changes = append(changes, sale.Change{Kind: sale.Expire, Order: id, Actor: "expiry"})
		}
		for _, g := range s.DB.Settle(ctx, changes) {
			if g.Outcome == sale.Changed {
				closed++
			} else if g.Outcome != sale.NotChanged {
				t.Fatalf("%+v", g)
			}
		}
	}
	took := time.Since(start)
	stop()
	seller.Wait()
	commits := s.Faults.passed(sale.SettlementWritten) - before
	t.Logf("%d orders closed in %v by %d transactions, beside %d promises", closed, took, commits, sold.Load())
	if closed != len(orders) || took > bound || int64(commits) > 2*n/page || sold.Load() == 0 {
		t.Errorf("%d of %d orders closed in %v by %d transactions, beside %d promises", closed, n, took, commits, sold.Load())
	}
	wantSettlement(t, s, "a")
}
