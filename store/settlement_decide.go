package store

import (
	"time"

	"stockade/biz/sale"
)

// Outcomes of a payment, as rows number them.
const (
	paymentTaken  = 1
	paymentRefund = 2
)

// standing is one order as a settlement finds it and as its decisions leave it.
type standing struct {
	record   record     // its outbox row
	archived bool       // the outbox row has left the outbox
	written  bool       // there is an order row, or this settlement writes one
	order    sale.Order // its order row, or else its outbox row
}

// payment is what is known of a provider's payment.
type payment struct {
	id      string
	order   sale.OrderID
	outcome int
}

// closing is an order that this settlement closes.
type closing struct {
	*standing
	fresh   bool // its order row is new
	actor   string
	restock *sale.Restock
}

// settlement is one transaction's decisions, to be written together.
type settlement struct {
	now      time.Time // of the database
	orders   map[sale.OrderID]*standing
	payments map[string]payment

	paid    []*standing
	closed  []closing
	taken   []payment // new payment rows
	refunds []sale.Notice
}

// nothing tells whether there is nothing to write.
func (s *settlement) nothing() bool { return len(s.paid)+len(s.closed)+len(s.taken) == 0 }

// decide answers one change and remembers what it asks to be written.
func (s *settlement) decide(e *edit) {
	o := s.orders[e.Order]
	if o == nil || (e.Buyer != "" && e.Buyer != o.record.order.Buyer) || (o.archived && !o.written) {
		e.answer(sale.NoOrder, sale.Order{})
		return
	}
	if gone := o.record.order.State == sale.OrderClosed; gone && (!o.written || o.order.State == sale.OrderCreated) {
		e.fail(sale.NotChanged, errDisagree)
		e.settled.Order = o.order
		return
	}
	switch e.Kind {
	case sale.Pay:
		s.pay(e, o)
	case sale.Compensate:
		s.compensate(e, o)
	default:
		s.end(e, o)
	}
}

func (s *settlement) pay(e *edit, o *standing) {
	known, repeated := s.payments[e.Payment]
	switch {
	case repeated && known.order != e.Order:
		e.answer(sale.PaymentReused, o.order)
		return
	case repeated && known.outcome == paymentTaken:
		e.answer(sale.Already, o.order)
		return
	case repeated:
		e.answer(sale.RefundRequired, o.order)
		return
	case !o.written:
		e.answer(sale.StillQueued, o.order)
		return
	}
	p := payment{id: e.Payment, order: e.Order, outcome: paymentTaken}
	if o.order.State == sale.OrderCreated {
		o.order.State = sale.OrderPaid
		s.paid = append(s.paid, o)
		e.answer(sale.Changed, o.order)
	} else {
		p.outcome = paymentRefund
		s.refunds = append(s.refunds, sale.Notice{
			Topic: sale.TopicRefundRequired, Orders: []sale.Order{o.order}, Payment: e.Payment,
		})
		e.answer(sale.RefundRequired, o.order)
	}
	s.payments[p.id] = p
	s.taken = append(s.taken, p)
}

// end is a cancel or an expiry.
func (s *settlement) end(e *edit, o *standing) {
	switch {
	case !o.written:
		e.answer(sale.StillQueued, o.order)
	case o.order.State == sale.OrderClosed:
		e.answer(sale.Already, o.order)
	case o.order.State == sale.OrderPaid:
		e.answer(sale.IsPaid, o.order)
	case e.Kind == sale.Expire && o.order.ExpiresAt.After(s.now):
		e.answer(sale.NotDue, o.order)
	default:
		s.close(e, o)
	}
}

// compensate closes an order that never got its row; one that has a row stands on its own.
func (s *settlement) compensate(e *edit, o *standing) {
	switch {
	case !o.written:
		s.close(e, o)
	case o.order.State == sale.OrderPaid:
		e.answer(sale.IsPaid, o.order)
	default:
		e.answer(sale.Already, o.order)
	}
}

func (s *settlement) close(e *edit, o *standing) {
	c := closing{standing: o, fresh: !o.written, actor: e.Actor, restock: &sale.Restock{
		Order: o.record.order.ID, SKU: o.record.order.SKU, Buyer: o.record.order.Buyer, Quantity: o.record.order.Quantity,
		Share: o.record.share, Taken: o.record.token.Epoch,
	}}
	o.written = true
	o.order.State, o.order.Reason = sale.OrderClosed, e.Kind.Reason()
	o.record.order.State = sale.OrderClosed
	s.closed = append(s.closed, c)
	e.answer(sale.Changed, o.order)
	e.settled.Restock = c.restock // its epoch is known once the ledger is written
}
