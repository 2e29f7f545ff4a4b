//go:build services

package drill_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"stockade/biz/sale"
)

// checkBound is how long the checker may think about one SKU; not knowing by then is a failure.
const checkBound = time.Minute

// standing is where an order stands in the model.
type standing int64

const (
	absent standing = iota
	live
	paid
	closed
)

// opKind is what happened to a SKU.
type opKind int

const (
	opTake   opKind = iota // the order exists: it is taken now, unless it was before
	opPay                  // the order is paid: now, unless it was before
	opClose                // the order is closed: now, unless it was before
	opSee                  // somebody was told where the order stands
	opTopUp                // units came on top, or went
	opRefuse               // units could not go, because they were promised
	opSettle               // the end: this is what is written
)

// op is one step of the sequential history that has to exist.
type op struct {
	kind     opKind
	order    int
	buyer    int
	quantity int64 // of opTake, opTopUp and opRefuse
	seen     standing
	final    []standing // of opSettle, by order
	left     int64      // of opSettle
}

// state is a SKU in the model. It is never changed, only replaced.
type state struct {
	left         int64
	orders, held vector // standing by order; live units by buyer
	units        vector // by order
}

// limitedTo is the model of a SKU: total units, none to anybody who would hold more than limit.
func limitedTo(total, limit int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{left: total} },
		Step: func(before, input, _ any) (bool, any) {
			after, ok := before.(state).step(input.(op), limit)
			return ok, after
		},
		Equal: func(a, b any) bool { return a.(state).equal(b.(state)) },
	}
}

func (s state) equal(o state) bool {
	return s.left == o.left && s.orders.equal(o.orders) && s.held.equal(o.held) && s.units.equal(o.units)
}

// step applies one operation; ok is false when it cannot happen here.
func (s state) step(o op, limit int64) (state, bool) {
	at := standing(s.orders.get(o.order))
	switch o.kind {
	case opTake:
		if at != absent {
			return s, true
		}
		held := s.held.get(o.buyer) + o.quantity
		if s.left < o.quantity || held > limit {
			return s, false
		}
		s.left -= o.quantity
		s.orders, s.held = s.orders.set(o.order, int64(live)), s.held.set(o.buyer, held)
		s.units = s.units.set(o.order, o.quantity)
		return s, true
	case opPay:
		s.orders = s.orders.set(o.order, int64(paid))
		return s, at == live || at == paid
	case opClose:
		if at != live {
			return s, at == closed
		}
		units := s.units.get(o.order)
		s.left += units
		s.orders = s.orders.set(o.order, int64(closed))
		s.held = s.held.set(o.buyer, s.held.get(o.buyer)-units)
		return s, true
	case opSee:
		return s, at == o.seen
	case opTopUp:
		s.left += o.quantity
		return s, s.left >= 0
	case opRefuse:
		return s, s.left+o.quantity < 0
	case opSettle:
		for order, want := range o.final {
			if standing(s.orders.get(order)) != want {
				return s, false
			}
		}
		return s, s.left == o.left
	}
	return s, false
}

// checkHistory looks for a sequential order of operations that the model allows and that respects the times of the calls.
// It returns "" when there is one.
func checkHistory(s *sku, ops []porcupine.Operation) string {
	switch porcupine.CheckOperationsTimeout(limitedTo(s.total, s.limit), ops, checkBound) {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return fmt.Sprintf("no sequential order explains the history of %d operations", len(ops))
	}
	return fmt.Sprintf("no verdict about a history of %d operations within %v", len(ops), checkBound)
}

// operations turns what buyers were told and what is written into operations. Refusals are left out: when they may be
// given is bounded by time, not by the state. A call of unknown outcome whose order exists may have made it at any time
// from then on; one whose order does not exist did nothing.
func operations(s *sku, began time.Time, attempts []attempt, tr truth) []porcupine.Operation {
	b := &opBuilder{truth: tr, orders: map[string]int{}, buyers: map[string]int{}, ids: map[request]string{}}
	var end time.Duration
	for _, a := range attempts {
		end = max(end, a.returned)
		if a.OrderID != "" && a.key != "" {
			b.ids[a.request] = a.OrderID
		}
	}
	for id, r := range tr.rows {
		b.byBuyer(r.buyer, id)
	}
	end += time.Since(began) // later than all that is written
	for _, a := range attempts {
		b.attempt(a, end)
	}
	b.topUps(began, attempts, end)
	for id, r := range tr.rows {
		b.written(id, r, began, end)
	}
	final := op{kind: opSettle, left: tr.total - tr.promised, final: make([]standing, len(b.orders))}
	for id, order := range b.orders {
		final.final[order] = tr.standing(id)
	}
	b.add(final, end+1, end+2)
	return b.ops
}

// standing is where the truth has an order.
func (tr truth) standing(id string) standing {
	r, ok := tr.rows[id]
	switch {
	case !ok:
		return absent
	case r.closed != 0:
		return closed
	case r.state == sale.OrderPaid:
		return paid
	}
	return live
}

type opBuilder struct {
	truth  truth
	ops    []porcupine.Operation
	orders map[string]int // number of an order id
	buyers map[string]int
	ids    map[request]string
	rows   map[string][]string // order ids by buyer
}

func (b *opBuilder) byBuyer(buyer, id string) {
	if b.rows == nil {
		b.rows = map[string][]string{}
	}
	b.rows[buyer] = append(b.rows[buyer], id)
}

func (b *opBuilder) add(o op, call, returned time.Duration) {
	b.ops = append(b.ops, porcupine.Operation{Input: o, Call: int64(call), Return: int64(returned)})
}

// number gives names numbers from 0 on.
func number(of map[string]int, name string) int {
	n, ok := of[name]
	if !ok {
		n = len(of)
		of[name] = n
	}
	return n
}

func (b *opBuilder) take(id, buyer string, quantity int64, call, returned time.Duration) op {
	if r, ok := b.truth.rows[id]; ok && !r.promised {
		quantity = 0 // acknowledged, never promised, closed without units
	}
	o := op{kind: opTake, order: number(b.orders, id), buyer: number(b.buyers, buyer), quantity: quantity}
	b.add(o, call, returned)
	return o
}

func (b *opBuilder) attempt(a attempt, end time.Duration) {
	switch {
	case a.kind == adjusting: // see topUps
	case a.kind != buying:
		b.change(a)
	case a.won():
		o := b.take(a.OrderID, a.buyer, a.quantity, a.call, a.returned)
		switch sale.OrderState(a.State) {
		case sale.OrderPaid:
			o.kind, o.seen = opSee, paid
			b.add(o, a.call, a.returned)
		case sale.OrderClosed:
			o.kind, o.seen = opSee, closed
			b.add(o, a.call, a.returned)
		}
	case a.open():
		id := a.OrderID
		if id == "" {
			id = b.ids[a.request]
		}
		if _, exists := b.truth.rows[id]; exists {
			b.take(id, a.buyer, a.quantity, a.call, end)
		}
	}
}

// written adds what nobody was told: orders of unanswered calls, and closes by the service itself.
func (b *opBuilder) written(id string, r row, began time.Time, end time.Duration) {
	o := b.take(id, r.buyer, r.quantity, sinceBegan(r.accepted, began), end)
	if r.closed != 0 {
		o.kind = opClose
		b.add(o, sinceBegan(r.closed, began), end)
	}
	if r.state == sale.OrderPaid {
		o.kind = opPay
		b.add(o, 0, end)
	}
}

// clockSlack is how much earlier than it was a written time may be taken for: it is in whole ms.
const clockSlack = 2 * time.Millisecond

// sinceBegan turns a time that the database wrote, on this very machine, into one of the history: not later than what it
// stands for.
func sinceBegan(ms int64, began time.Time) time.Duration {
	return max(0, time.UnixMilli(ms).Sub(began)-clockSlack)
}

// vector is a list of numbers that are 0 unless set. Setting one copies a part of it: the model keeps old states.
type vector struct{ parts []*[vectorPart]int64 }

const vectorPart = 64

func (v vector) get(i int) int64 {
	if p := i / vectorPart; p < len(v.parts) && v.parts[p] != nil {
		return v.parts[p][i%vectorPart]
	}
	return 0
}

func (v vector) set(i int, value int64) vector {
	p := i / vectorPart
	parts := slices.Grow(slices.Clone(v.parts), max(0, p+1-len(v.parts)))
	for len(parts) <= p {
		parts = append(parts, nil)
	}
	part := [vectorPart]int64{}
	if parts[p] != nil {
		part = *parts[p]
	}
	part[i%vectorPart] = value
	parts[p] = &part
	return vector{parts}
}

func (v vector) equal(o vector) bool {
	for i := range max(len(v.parts), len(o.parts)) {
		var a, b *[vectorPart]int64
		if i < len(v.parts) {
			a = v.parts[i]
		}
		if i < len(o.parts) {
			b = o.parts[i]
		}
		if a == b {
			continue
		}
		zero := [vectorPart]int64{}
		if a == nil {
			a = &zero
		}
		if b == nil {
			b = &zero
		}
		if *a != *b {
			return false
		}
	}
	return true
}
