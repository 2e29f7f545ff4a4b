package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
)

// tale is a random life of a SKU's orders on two nodes: bought, written, paid, cancelled, expired and compensated between
// and inside reshares, with credits whose requests and answers get lost, and beside which the other node credits and
// reshares.
type tale struct {
	*rapid.T
	lab    *lab
	nodes  [2]*testNode
	tills  [2]*till
	sku    sale.SKU
	orders map[sale.OrderID]*sale.Order // as they must stand
	ids    []sale.OrderID
	paid   map[string]sale.OrderID // payments by the order that they were for
	bought int                     // purchases tried
}

func (h *tale) must(err error) {
	if err != nil {
		h.Helper()
		h.Fatal(err)
	}
}

// one is where the next step happens, and the other node.
func (h *tale) one() (s *till, n *testNode, other int) {
	i := rapid.IntRange(0, 1).Draw(h.T, "node")
	return h.tills[i], h.nodes[i], 1 - i
}

func (h *tale) buy() {
	s, n, _ := h.one()
	buyer := rapid.SampledFrom(buyers).Draw(h.T, "buyer")
	h.bought++
	written := rapid.IntRange(0, 3).Draw(h.T, "written") > 0
	o, err := s.buy(h.Context(), n, h.sku.ID, buyer, fmt.Sprint("k", h.bought), rapid.Int64Range(1, 3).Draw(h.T, "quantity"), written)
	h.must(err)
	n.outcome()
	if o.ID == (sale.OrderID{}) {
		return
	}
	if written {
		o.State = sale.OrderCreated
	}
	h.orders[o.ID] = &o
	h.ids = append(h.ids, o.ID)
}

// pick is any order, or nil.
func (h *tale) pick() *sale.Order {
	if len(h.ids) == 0 {
		return nil
	}
	return h.orders[rapid.SampledFrom(h.ids).Draw(h.T, "order")]
}

func (h *tale) closed(o *sale.Order, why sale.Reason) { o.State, o.Reason = sale.OrderClosed, why }

func (h *tale) check(what string, o *sale.Order, done sale.Settled, err error, want sale.ChangeOutcome) {
	if err != nil || done.Outcome != want {
		h.Fatalf("%s of %+v: %+v, %v, want outcome %d", what, o, done, err, want)
	}
}

func (h *tale) pay() {
	o := h.pick()
	if o == nil {
		return
	}
	payment := h.sku.ID + rapid.SampledFrom([]string{"-p1", "-p2", "-p3", "-p4"}).Draw(h.T, "payment")
	want := sale.RefundRequired
	switch owner, used := h.paid[payment]; {
	case used && owner != o.ID:
		want = sale.PaymentReused
	case o.State == sale.OrderQueued:
		want = sale.StillQueued
	case used && o.State == sale.OrderPaid:
		want = sale.Already
	case o.State == sale.OrderCreated:
		want = sale.Changed
	}
	s, _, _ := h.one()
	done, err := s.settler.Pay(h.Context(), o.ID, payment)
	if o.State == sale.OrderPaid && want == sale.Already && done.Outcome == sale.RefundRequired {
		want = sale.RefundRequired // this payment was the second one of its order
	}
	h.check("pay by "+payment, o, done, err, want)
	if want == sale.Changed {
		o.State = sale.OrderPaid
	}
	if want == sale.Changed || want == sale.RefundRequired {
		h.paid[payment] = o.ID
	}
}

func (h *tale) cancel() {
	o := h.pick()
	if o == nil {
		return
	}
	want := map[sale.OrderState]sale.ChangeOutcome{
		sale.OrderQueued: sale.StillQueued, sale.OrderCreated: sale.Changed, sale.OrderPaid: sale.IsPaid, sale.OrderClosed: sale.Already,
	}[o.State]
	s, _, _ := h.one()
	done, err := s.settler.Cancel(h.Context(), o.ID, "", "operator")
	h.check("cancel", o, done, err, want)
	if want == sale.Changed {
		h.closed(o, sale.ReasonCancelled)
	}
}

func (h *tale) compensate() {
	o := h.pick()
	if o == nil {
		return
	}
	s, _, _ := h.one()
	done, err := s.settler.Compensate(h.Context(), o.ID, "dead letter")
	if o.State == sale.OrderQueued {
		h.check("compensate", o, done, err, sale.Changed)
		h.closed(o, sale.ReasonCompensated)
	} else if err != nil || done.Outcome == sale.Changed || done.Order.State != o.State {
		h.Fatalf("compensate of %+v: %+v, %v", o, done, err)
	}
}

// expire lets windows end, and the sweeper find them.
func (h *tale) expire() {
	h.lab.clock.advance(time.Duration(rapid.IntRange(1, 12).Draw(h.T, "minutes")) * time.Minute)
	s, _, _ := h.one()
	h.must(s.expirer.Round(h.Context()))
	now := h.lab.clock.Now()
	for _, o := range h.orders {
		if o.State == sale.OrderCreated && !o.ExpiresAt.After(now) {
			h.closed(o, sale.ReasonPaymentTimeout)
		}
	}
}

// write lets the message of a queued order arrive, also when it is late.
func (h *tale) write() {
	o := h.pick()
	if o == nil {
		return
	}
	late := *o
	late.State, late.Reason = sale.OrderQueued, ""
	h.must(h.tills[0].write(h.Context(), late))
	if o.State == sale.OrderQueued {
		o.State = sale.OrderCreated
	}
}

// order is a reshare, light more often than not: a full one knows all closed orders.
func (h *tale) order() service.ReshareOrder {
	return service.ReshareOrder{Reason: "test", Full: rapid.IntRange(0, 3).Draw(h.T, "full") == 0}
}

// reshare lays the stock out anew, or gets half-way.
func (h *tale) reshare() {
	_, n, _ := h.one()
	half := rapid.IntRange(0, 3).Draw(h.T, "half") == 0
	if half {
		n.plan(rapid.IntRange(0, 12).Draw(h.T, "steps"), rapid.SampledFrom([]faultKind{crashBefore, crashAfter}).Draw(h.T, "fault"))
	}
	err := n.resharer.Run(h.Context(), h.sku.ID, h.order())
	n.plan(0, noFault)
	if !half {
		h.must(err)
	}
}

// credit runs a round on one node. Before the gate is asked, and before what it says is noted, the other node may credit
// the same restocks, or reshare.
func (h *tale) credit() {
	s, _, other := h.one()
	s.gate.lose = func() faultKind {
		return rapid.SampledFrom([]faultKind{noFault, lostRequest, lostReply}).Draw(h.T, "loss")
	}
	s.gate.meanwhile = func() {
		switch rapid.IntRange(0, 5).Draw(h.T, "meanwhile") {
		case 0:
			h.must(h.tills[other].creditor.Round(h.Context(), 0))
		case 1:
			h.must(h.nodes[other].resharer.Run(h.Context(), h.sku.ID, h.order()))
		}
	}
	h.must(s.creditor.Round(h.Context(), 0))
	s.gate.lose, s.gate.meanwhile = noLoss, func() {}
}

// end lets everything settle and checks that every unit is promised or left, and counted for the buyer who has it.
func (h *tale) end() {
	listing, err := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(err)
	if !listing.Ledger.Live() {
		h.must(h.nodes[0].resharer.Run(h.Context(), h.sku.ID, service.ReshareOrder{Reason: "end"}))
	}
	h.must(h.tills[0].credited(h.Context(), h.sku.ID))
	h.must(h.tills[0].balance(h.Context(), h.sku.ID))
	held := map[string]int64{}
	for id, o := range h.orders {
		if o.State != sale.OrderClosed {
			held[o.Buyer] += o.Quantity
		}
		seen, err := h.tills[1].settler.AnyOrder(h.Context(), id)
		if err != nil || seen != *o {
			h.Fatalf("order %+v, %v, want %+v", seen, err, *o)
		}
	}
	counted, err := h.lab.counts(h.Context(), h.sku)
	h.must(err)
	for _, buyer := range buyers {
		if counted[buyer] != held[buyer] {
			h.Fatalf("the shares count %d units for %s, who has %d", counted[buyer], buyer, held[buyer])
		}
	}
}

// counts sums up what the shares count for each buyer.
func (l *lab) counts(ctx context.Context, sku sale.SKU) (map[string]int64, error) {
	keys, err := l.keysOf(ctx, sku)
	if err != nil {
		return nil, err
	}
	of := map[string]int64{}
	for _, key := range keys {
		if !strings.HasSuffix(key, ":buyer") {
			continue
		}
		rows, err := l.raw.HGetAll(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		for buyer, row := range rows {
			var units, undecided int64
			if _, err := fmt.Sscanf(row, "%d:%d", &units, &undecided); err != nil || undecided != 0 {
				return nil, fmt.Errorf("%s of %s: %q, %w", buyer, key, row, err)
			}
			of[buyer] += units
		}
	}
	return of, nil
}

// TestSettlementModel checks that after everything has settled and every credit was applied, each unit is promised or
// left in the gate, whatever the order of payments, closings, reshares and lost answers.
func TestSettlementModel(t *testing.T) {
	setRapid(t, 60)
	l := newLab(t)
	l.config.ExpiryPerSecond = 1_000_000
	gates := [2]*shard.Gate{l.gate(t), l.gate(t)}
	counted := 0
	rapid.Check(t, func(rt *rapid.T) {
		h := &tale{T: rt, lab: l, orders: map[sale.OrderID]*sale.Order{}, paid: map[string]sale.OrderID{}}
		credits := newCreditLog()
		for i, gate := range gates {
			h.nodes[i], h.tills[i] = l.node(gate), newTill(l, gate, l.db)
			h.tills[i].gate.credits = credits
			defer h.nodes[i].stop()
			defer h.tills[i].settler.Close()
		}
		var err error
		h.sku, err = l.newSKU(rt.Context(), h.nodes[0], rapid.Int64Range(1, 20).Draw(rt, "total"), sale.SKU{
			Limit: 4, Slots: rapid.IntRange(1, 4).Draw(rt, "slots"), ReservePct: 10, OpensAt: l.clock.Now(),
		})
		h.must(err)
		actions := []func(){
			h.buy, h.buy, h.buy, h.buy, h.pay, h.cancel, h.cancel, h.compensate, h.expire, h.write,
			h.reshare, h.reshare, h.credit, h.credit,
		}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "action")()
		}
		h.end()
		counted += credits.counted
	})
	t.Logf("%d credits came after a light reshare had counted the units", counted)
	if counted == 0 {
		t.Error("no credit came after a light reshare had counted the units")
	}
}

// TestCreditsRaceReshares closes orders while their SKU is reshared all the time and every third credit loses its answer.
func TestCreditsRaceReshares(t *testing.T) { creditsRaceReshares(t, newLab(t), 100) }

func creditsRaceReshares(t *testing.T, l *lab, orders int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s, n, sku := openTillIn(t, l, int64(orders), sale.SKU{Limit: 1, Slots: 4, ReservePct: 10})
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	s.gate.lose = func() faultKind {
		mu.Lock()
		defer mu.Unlock()
		return []faultKind{noFault, noFault, noFault, noFault, lostReply, lostRequest}[rng.IntN(6)]
	}
	var ids []sale.OrderID
	for i := range orders {
		ids = append(ids, s.mustBuy(t, n, sku.ID, fmt.Sprint("buyer-", i), 1, true).ID)
	}
	ctx := t.Context()
	var closing, others sync.WaitGroup
	closed := make(chan struct{})
	for part := range 3 {
		closing.Go(func() {
			for i := part; i < orders; i += 3 {
				done, err := s.settler.Cancel(ctx, ids[i], "", "operator")
				if i%3 == 0 && i%2 == 0 && err == nil {
					done, err = s.settler.Cancel(ctx, ids[i], "", "operator")
				}
				if err != nil || done.Order.State != sale.OrderClosed {
					t.Errorf("cancel: %+v, %v", done, err)
				}
			}
		})
	}
	until := func(step func(i int)) {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-closed:
					return
				default:
					step(i)
				}
			}
		})
	}
	reshares := 0
	until(func(i int) {
		if err := n.resharer.Run(ctx, sku.ID, service.ReshareOrder{Reason: "race", Full: i%3 == 0}); err != nil {
			t.Errorf("reshare: %v", err)
		}
		reshares++
	})
	for range 2 {
		until(func(int) {
			if err := s.creditor.Round(ctx, 0); err != nil {
				t.Errorf("round: %v", err)
			}
		})
	}
	closing.Wait()
	close(closed)
	others.Wait()
	mu.Lock()
	s.gate.lose = noLoss
	mu.Unlock()
	if err := s.credited(ctx, sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
	t.Logf("%d orders closed through %d reshares; light ones had counted %d of them", orders, reshares, s.gate.credits.counted)
	if reshares < 2 {
		t.Errorf("only %d reshares", reshares)
	}
}
