package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stockade/biz/sale"
)

const (
	settleHistories = 4
	settleSteps     = 60
)

// settlesLikeModel runs random histories of orders of two SKUs and checks every outcome, ledger and notice against a
// model that decides one change after the other.
func settlesLikeModel(t *testing.T, s Subject) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for h := range uint64(settleHistories) {
		m := &lifeModel{
			t: t, s: s, rng: rand.New(rand.NewPCG(seed, h)), prefix: fmt.Sprintf("h%d", h),
			ledgers: map[string]*lifeLedger{}, payments: map[string]*lifePayment{},
		}
		for _, name := range []string{m.prefix + "-a", m.prefix + "-b"} {
			newSKU(t, s.DB, name, 10_000, 1000)
			m.ledgers[name] = &lifeLedger{epoch: 1, live: 1}
		}
		for range settleSteps {
			m.step()
			if t.Failed() {
				t.Fatalf("seed %d, history %d", seed, h)
			}
		}
		for name := range m.ledgers {
			wantSettlement(t, s, name)
		}
	}
}

type lifeLedger struct{ epoch, live, promised, sold, changes int64 }

type lifeOrder struct {
	take   sale.Take
	state  sale.OrderState
	reason sale.Reason
	due    bool
	born   int64 // epoch of the restock, once there is one; 0: none
}

type lifePayment struct {
	order *lifeOrder
	taken bool
}

type lifeModel struct {
	t        *testing.T
	s        Subject
	rng      *rand.Rand
	prefix   string
	ledgers  map[string]*lifeLedger
	orders   []*lifeOrder
	payments map[string]*lifePayment
	told     []string // what the notices of this step are to say
}

func (m *lifeModel) step() {
	m.told = nil
	switch m.rng.IntN(12) {
	case 0, 1:
		m.sell()
	case 2, 3:
		m.write()
	case 4:
		m.fallDue()
	case 5:
		m.reshare()
	case 6:
		m.carry()
	default:
		m.settle()
	}
	var told []string
	for _, n := range notes(m.t, m.s) {
		for _, o := range n.Orders {
			told = append(told, tell(n.Topic, o.ID, o.State, o.Reason, n.Payment))
		}
	}
	slices.Sort(told)
	slices.Sort(m.told)
	if !slices.Equal(told, m.told) {
		m.t.Errorf("notices\n%q\nthe model says\n%q", told, m.told)
	}
	for name, want := range m.ledgers {
		l, err := m.s.DB.Listing(m.t.Context(), name)
		must(m.t, err)
		if got := (lifeLedger{
			l.Ledger.Epoch, l.Ledger.LiveEpoch, l.Ledger.Promised, l.Ledger.Sold, l.Ledger.Changes,
		}); got != *want {
			m.t.Errorf("%s: ledger %+v, the model says %+v", name, got, *want)
		}
	}
}

func tell(topic string, id sale.OrderID, state sale.OrderState, reason sale.Reason, payment string) string {
	return fmt.Sprint(topic, " ", id, " ", state, " ", reason, " ", payment)
}

func (m *lifeModel) takes() []sale.Take {
	name := m.prefix + []string{"-a", "-b"}[m.rng.IntN(2)]
	var takes []sale.Take
	for range 1 + m.rng.IntN(6) {
		k := take(name, buyer(m.rng.IntN(6)), 1+m.rng.Int64N(3), 1000)
		k.Epoch = m.ledgers[name].live
		k.Share = sale.Share(m.rng.IntN(5) - 1)
		takes = append(takes, k)
	}
	return takes
}

func (m *lifeModel) promised(k sale.Take) {
	l := m.ledgers[k.SKU]
	l.promised += k.Quantity
	l.changes += k.Quantity
	m.orders = append(m.orders, &lifeOrder{take: k, state: sale.OrderQueued})
}

func (m *lifeModel) sell() {
	takes := m.takes()
	l := m.ledgers[takes[0].SKU]
	for i, d := range promise(m.t, m.s.DB, takes...) {
		want := sale.Promised
		if l.live != l.epoch {
			want = sale.Fenced
		} else {
			m.promised(takes[i])
		}
		if d.Outcome != want {
			m.t.Errorf("promise: %+v, want %v", d, want)
		}
	}
}

// carry is what a reshare does about acknowledged takes.
func (m *lifeModel) carry() {
	takes := m.takes()
	sku, l := takes[0].SKU, m.ledgers[takes[0].SKU]
	if l.live == l.epoch {
		return
	}
	half := len(takes) / 2
	ds, err := m.s.DB.Carry(m.t.Context(), sku, l.epoch, takes[:half])
	must(m.t, err)
	for i, d := range ds {
		if d.Outcome != sale.Promised {
			m.t.Errorf("carried: %+v", d)
		}
		m.promised(takes[i])
	}
	closed, refused, err := m.s.DB.CloseUnpromised(m.t.Context(), takes[half:])
	if err != nil || len(closed) != len(takes)-half || len(refused) > 0 {
		m.t.Errorf("closed %v of %d, refused %v, %v", closed, len(takes)-half, refused, err)
	}
	for _, k := range takes[half:] {
		m.orders = append(m.orders, &lifeOrder{take: k, state: sale.OrderClosed, reason: sale.ReasonCompensated})
		m.told = append(m.told, tell(sale.TopicClosed, k.Order, sale.OrderClosed, sale.ReasonCompensated, ""))
	}
}

// write is a consumer that gets some orders, new ones and old ones.
func (m *lifeModel) write() {
	var batch []sale.Order
	for _, o := range m.orders {
		if m.rng.IntN(3) > 0 {
			continue
		}
		k := o.take
		order, err := m.s.DB.Order(m.t.Context(), k.Buyer, k.Order)
		must(m.t, err)
		order.State, order.Reason = sale.OrderQueued, ""
		batch = append(batch, order)
		if o.state == sale.OrderQueued {
			o.state = sale.OrderCreated
			m.told = append(m.told, tell(sale.TopicCreated, k.Order, sale.OrderCreated, "", ""))
		}
	}
	refused, err := m.s.DB.InsertOrders(m.t.Context(), batch)
	if err != nil || refused != nil {
		m.t.Error(refused, err)
	}
}

func (m *lifeModel) fallDue() {
	for _, o := range m.orders {
		if m.rng.IntN(3) == 0 {
			order, err := m.s.DB.Order(m.t.Context(), o.take.Buyer, o.take.Order)
			must(m.t, err)
			expire(m.t, m.s, order)
			o.due = true
		}
	}
}

// reshare begins one, or finishes the one that is under way.
func (m *lifeModel) reshare() {
	for name, l := range m.ledgers {
		if l.live == l.epoch {
			l.epoch = begin(m.t, m.s, name, l.epoch, sale.LedgerChange{})
		} else {
			must(m.t, m.s.DB.FinishReshare(m.t.Context(), name, l.epoch, m.rng.IntN(2) == 0, ""))
			l.live = l.epoch
		}
	}
}

func (m *lifeModel) settle() {
	var changes []sale.Change
	var of []*lifeOrder
	for range 1 + m.rng.IntN(12) {
		c := sale.Change{Kind: sale.ChangeKind(1 + m.rng.IntN(4)), Order: newID(), Actor: "somebody"}
		o := (*lifeOrder)(nil)
		if len(m.orders) > 0 && m.rng.IntN(12) > 0 {
			o = m.orders[m.rng.IntN(len(m.orders))]
			c.Order = o.take.Order
			c.Buyer = []string{"", o.take.Buyer, o.take.Buyer, o.take.Buyer + " "}[m.rng.IntN(4)]
		}
		if c.Kind == sale.Pay {
			c.Payment = fmt.Sprintf("%s-%d", m.prefix, m.rng.IntN(60))
		}
		if c.Buyer != "" && o != nil && c.Buyer != o.take.Buyer {
			o = nil
		}
		changes, of = append(changes, c), append(of, o)
	}
	for i, g := range change(m.t, m.s, changes...) {
		o := of[i]
		want := m.decide(changes[i], o)
		if g.Outcome != want {
			m.t.Errorf("change %+v of %+v: %+v, the model says %v", changes[i], o, g, want)
		}
		if o == nil {
			continue
		}
		if g.Order.ID != o.take.Order || g.Order.State != o.state || g.Order.Reason != o.reason {
			m.t.Errorf("change %+v: the order is told as %+v, the model says %+v", changes[i], g.Order, o)
		}
		closed := want == sale.Changed && changes[i].Kind != sale.Pay
		if closed != (g.Restock != nil) {
			m.t.Errorf("change %+v: restock %+v", changes[i], g.Restock)
		} else if r := g.Restock; closed && *r != (sale.Restock{
			Order: o.take.Order, SKU: o.take.SKU, Buyer: o.take.Buyer, Quantity: o.take.Quantity, Share: o.take.Share,
			Taken: o.take.Token.Epoch, Epoch: o.born,
		}) {
			m.t.Errorf("change %+v: restock %+v, the model says %+v", changes[i], *r, o)
		}
	}
}

// decide answers one change and changes the model.
func (m *lifeModel) decide(c sale.Change, o *lifeOrder) sale.ChangeOutcome {
	switch {
	case o == nil:
		return sale.NoOrder
	case c.Kind == sale.Pay:
		return m.pay(c, o)
	case c.Kind == sale.Compensate && o.state == sale.OrderQueued:
		return m.close(c, o)
	case c.Kind == sale.Compensate && o.state == sale.OrderCreated:
		return sale.Already
	case o.state == sale.OrderQueued:
		return sale.StillQueued
	case o.state == sale.OrderClosed:
		return sale.Already
	case o.state == sale.OrderPaid:
		return sale.IsPaid
	case c.Kind == sale.Expire && !o.due:
		return sale.NotDue
	}
	return m.close(c, o)
}

func (m *lifeModel) close(c sale.Change, o *lifeOrder) sale.ChangeOutcome {
	l := m.ledgers[o.take.SKU]
	o.state, o.reason, o.born = sale.OrderClosed, c.Kind.Reason(), l.epoch
	l.promised -= o.take.Quantity
	l.changes += o.take.Quantity
	m.told = append(m.told, tell(sale.TopicClosed, o.take.Order, o.state, o.reason, ""))
	return sale.Changed
}

func (m *lifeModel) pay(c sale.Change, o *lifeOrder) sale.ChangeOutcome {
	p := m.payments[c.Payment]
	switch {
	case p != nil && p.order != o:
		return sale.PaymentReused
	case p != nil && p.taken:
		return sale.Already
	case p != nil:
		return sale.RefundRequired
	case o.state == sale.OrderQueued:
		return sale.StillQueued
	}
	p = &lifePayment{order: o, taken: o.state == sale.OrderCreated}
	m.payments[c.Payment] = p
	if !p.taken {
		m.told = append(m.told, tell(sale.TopicRefundRequired, o.take.Order, o.state, o.reason, c.Payment))
		return sale.RefundRequired
	}
	o.state = sale.OrderPaid
	m.ledgers[o.take.SKU].sold += o.take.Quantity
	m.told = append(m.told, tell(sale.TopicPaid, o.take.Order, o.state, "", ""))
	return sale.Changed
}
