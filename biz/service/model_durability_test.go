package service_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
)

// durable is one random life of a SKU whose durability and path change all the time. Redis keeps its data.
type durable struct {
	*rapid.T
	lab   *lab
	gates [2]*shard.Gate
	nodes [2]*testNode
	sku   sale.SKU
	total int64

	written map[sale.OrderID]win // told ACCEPTED under durability outbox: in MySQL from then on
	carried map[sale.OrderID]win // told ACCEPTED under journal: in MySQL, or acknowledged in a share
}

func (s faultyStore) CloseUnpromised(
	ctx context.Context, takes []sale.Take,
) (closed []sale.OrderID, refused map[sale.OrderID]error, err error) {
	closed, err = through(s.f, func() (closed []sale.OrderID, err error) {
		closed, refused, err = s.realStore.CloseUnpromised(ctx, takes)
		return closed, err
	})
	if err != nil {
		return nil, nil, err
	}
	return closed, refused, nil
}

func (s faultyStore) Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error) {
	return through(s.f, func() ([]sale.Decision, error) { return s.realStore.Carry(ctx, sku, epoch, takes) })
}

func (s faultyStore) BypassGate(ctx context.Context, sku string) error {
	return plainly(s.f, func() error { return s.realStore.BypassGate(ctx, sku) })
}

func TestModelDurability(t *testing.T) {
	const labs = 2
	setRapid(t, embeddedHistories/4/labs)
	for i := range labs {
		t.Run(fmt.Sprint("lab ", i), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			runDurable(t, l, i)
		})
	}
}

func runDurable(t *testing.T, l *lab, predecessors int) {
	gates := [2]*shard.Gate{l.gate(t), l.gate(t)}
	rapid.Check(t, func(rt *rapid.T) {
		for range predecessors {
			rapid.Uint64().Draw(rt, "thrown away")
		}
		d := &durable{
			T: rt, lab: l, gates: gates,
			written: map[sale.OrderID]win{}, carried: map[sale.OrderID]win{},
		}
		d.begin()
		defer func() {
			for _, n := range d.nodes {
				n.stop()
			}
		}()
		actions := []func(){
			d.buy, d.buy, d.buy, d.buy, d.buy, d.buy, d.buy, d.buy,
			d.toggle, d.toggle, d.sweep, d.sweep, d.reshare, d.leaveGate, d.returnToGate, d.restart, d.wait,
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "action")()
			d.nothingLost()
		}
		d.settleAll()
	})
}

func (d *durable) begin() {
	for i := range d.nodes {
		d.nodes[i] = d.lab.node(d.gates[i])
	}
	d.total = rapid.Int64Range(1, 12).Draw(d.T, "total")
	var err error
	d.sku, err = d.lab.newSKU(d.Context(), d.nodes[0], d.total, sale.SKU{
		Limit: rapid.Int64Range(1, 4).Draw(d.T, "limit"), Slots: rapid.IntRange(1, 3).Draw(d.T, "slots"),
		ReservePct: rapid.IntRange(0, 50).Draw(d.T, "reserve %"),
	})
	d.must(err)
}

func (d *durable) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatalf("unexpected error: %v", err)
	}
}

// on runs a step on some node, with something going wrong in it or not, and tells whether it did. A node that died comes
// back with an empty memory, and nobody has heard its answer.
func (d *durable) on(steps int, do func(n *testNode)) (fired, dead bool) {
	i := rapid.IntRange(0, 1).Draw(d.T, "node")
	kind, at := noFault, 0
	if rapid.IntRange(0, 2).Draw(d.T, "faulty?") == 0 {
		kind = faultKind(rapid.IntRange(1, 4).Draw(d.T, "fault"))
		at = rapid.IntRange(0, steps).Draw(d.T, "at step")
	}
	n := d.nodes[i]
	n.plan(at, kind)
	do(n)
	fired, dead = n.outcome()
	if dead {
		d.replace(i)
	}
	d.nodes[i].plan(0, noFault)
	return fired, dead
}

func (d *durable) replace(i int) {
	d.nodes[i].stop()
	d.nodes[i] = d.lab.node(d.gates[i])
}

func (d *durable) buy() {
	req, id := modelRequest(service.PurchaseRequest{
		SKU: d.sku.ID, Buyer: rapid.SampledFrom(buyers).Draw(d.T, "buyer"), Quantity: rapid.Int64Range(1, 2).Draw(d.T, "quantity"),
		Key: rapid.SampledFrom([]string{"k1", byToken}).Draw(d.T, "key"),
	})
	var r sale.Result
	var err error
	var durability string
	_, dead := d.on(7, func(n *testNode) {
		durability = n.toggles.Durability(req.SKU)
		r, err = n.sales.Purchase(d.Context(), req)
	})
	d.Logf("%s buy %+v: %v %s %v (died: %v)", durability, req, r.Code, r.Reason, err, dead)
	if dead || errors.Is(err, sale.ErrKeyReused) {
		return
	}
	d.must(err)
	if r.Code != sale.Accepted {
		return
	}
	if r.Order.ID != id || r.Order.Buyer != req.Buyer || r.Order.Quantity != req.Quantity {
		d.Fatalf("accepted as another order: %+v", r.Order)
	}
	if want := r.Order.AcceptedAt.Add(d.sku.PaymentWindow); !r.Order.ExpiresAt.Equal(want) {
		d.Fatalf("expires_at %v, want %v", r.Order.ExpiresAt, want)
	}
	o := win{buyer: req.Buyer, quantity: req.Quantity}
	_, before := d.carried[id]
	if durability == sale.DurabilityOutbox && !before && !r.Replayed {
		d.written[id] = o
	} else if _, ok := d.written[id]; !ok {
		d.carried[id] = o
	}
}

// toggle sets the durability for all nodes; some nodes do not hear of it yet.
func (d *durable) toggle() {
	value := rapid.SampledFrom([]string{sale.DurabilityOutbox, sale.DurabilityJournal}).Draw(d.T, "durability")
	d.must(d.nodes[0].toggles.Set(d.Context(), sale.Toggle{Name: sale.ToggleDurability, Value: value, Reason: "test", Actor: "test"}))
	if rapid.Bool().Draw(d.T, "both hear of it") {
		d.nodes[1].toggles.Load(d.Context())
	}
}

func (d *durable) sweep() {
	d.on(6, func(n *testNode) {
		listing, err := d.lab.db.Listing(d.Context(), d.sku.ID)
		d.must(err)
		_, err = n.sweeper.Sweep(d.Context(), listing, 0)
		d.Logf("sweep: %v", err)
	})
}

func (d *durable) reshare() {
	d.on(14, func(n *testNode) {
		err := n.resharer.Run(d.Context(), d.sku.ID, service.ReshareOrder{Reason: "test", Full: rapid.Bool().Draw(d.T, "full")})
		d.Logf("reshare: %v", err)
	})
}

func (d *durable) leaveGate() {
	d.on(1, func(n *testNode) {
		err := faultyStore{d.lab.db, n.faults}.BypassGate(d.Context(), d.sku.ID)
		d.Logf("path mysql: %v", err)
	})
}

func (d *durable) returnToGate() {
	d.on(14, func(n *testNode) {
		err := n.resharer.Run(d.Context(), d.sku.ID, service.ReshareOrder{Reason: "test", Full: true, Mode: sale.ModeRedis})
		d.Logf("path redis: %v", err)
	})
}

func (d *durable) restart() { d.replace(rapid.IntRange(0, 1).Draw(d.T, "node")) }

func (d *durable) wait() {
	d.lab.clock.advance(time.Duration(rapid.IntRange(100, 3000).Draw(d.T, "ms")) * time.Millisecond)
}

// nothingLost checks the books, and that everybody who was told ACCEPTED has an order.
func (d *durable) nothingLost() {
	d.Helper()
	books, err := d.lab.db.Books(d.Context(), d.sku.ID)
	d.must(err)
	if books.Promised != books.LiveUnits || books.Promised > books.Total || books.OverLimit != 0 {
		d.Fatalf("the books do not agree: %+v", books)
	}
	for id, o := range d.written {
		order, err := d.lab.db.Order(d.Context(), o.buyer, id)
		if err != nil || order.State == sale.OrderClosed || order.Quantity != o.quantity {
			d.Fatalf("accepted under durability outbox: %v, now %+v, %v", o, order, err)
		}
	}
	for id, o := range d.carried {
		order, err := d.nodes[0].sales.OrderOf(d.Context(), d.sku.ID, o.buyer, id)
		if err == nil && (order.State != sale.OrderClosed || order.Reason == sale.ReasonCompensated) {
			continue
		}
		if errors.Is(err, sale.ErrNotFound) && d.inJournal(id) { // the way leads past the gate, or the reshare is half-way
			continue
		}
		d.Fatalf("accepted under durability journal: %v, now %+v, %v", o, order, err)
	}
}

// inJournal looks in every share for an acknowledged take.
func (d *durable) inJournal(id sale.OrderID) bool {
	for _, share := range sale.Shares(d.sku.Slots) {
		take, err := d.gates[0].Held(d.Context(), d.sku.ID, share, id)
		if err == nil && take.Acknowledged {
			return true
		}
	}
	return false
}

// settleAll repairs everything: every order is in MySQL then, and the gate has what is left.
func (d *durable) settleAll() {
	d.must(d.nodes[0].resharer.Run(d.Context(), d.sku.ID, service.ReshareOrder{Reason: "end", Full: true, Mode: sale.ModeRedis}))
	for i := range d.nodes {
		d.replace(i)
	}
	d.nothingLost()
	for id, o := range d.carried {
		if order, err := d.lab.db.Order(d.Context(), o.buyer, id); err != nil || order.Quantity != o.quantity {
			d.Fatalf("accepted under durability journal: %v, at the end %+v, %v", o, order, err)
		}
	}
	figures, err := d.gates[0].Peek(d.Context(), d.sku.ID, d.sku.Slots)
	d.must(err)
	books, err := d.lab.db.Books(d.Context(), d.sku.ID)
	d.must(err)
	left := int64(0)
	for _, f := range figures {
		left += f.Left
		if f.Gone || f.Sealed || f.Pending != 0 {
			d.Fatalf("share %s at the end: %+v", f.Share, f)
		}
	}
	if left != books.Total-books.Promised {
		d.Fatalf("%d units in the shares at the end, %+v", left, books)
	}
}
