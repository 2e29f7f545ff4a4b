package handler

import (
	"context"
	"errors"
	"strconv"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Settlements changes orders after they were accepted. Errors: sale.ErrQueueFull, sale.ErrShuttingDown and
// sale.ErrUnavailable, nothing was changed; service.ErrOutcomeUnknown.
type Settlements interface {
	Pay(ctx context.Context, id sale.OrderID, payment string) (sale.Settled, error)
	// Cancel closes an order of this buyer, or, with an empty buyer, of whoever it is.
	Cancel(ctx context.Context, id sale.OrderID, buyer, actor string) (sale.Settled, error)
	// AnyOrder finds an order whoever it belongs to; sale.ErrNotFound.
	AnyOrder(ctx context.Context, id sale.OrderID) (sale.Order, error)
}

// Pay serves POST /v1/payments, the payment provider's signed callback.
func (a *API) Pay(ctx context.Context, c *app.RequestContext) {
	if !a.Webhooks.enabled() {
		(&Problem{Code: PaymentsDisabled}).Write(c)
		return
	}
	d := a.decoders.get()
	defer a.decoders.put(d)
	problem := d.read(c)
	if problem == nil {
		problem = a.Webhooks.verify(c, d.raw, a.Now())
	}
	var order sale.OrderID
	var payment string
	if problem == nil {
		order, payment, problem = d.payment()
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	done, err := a.Settlements.Pay(ctx, order, payment)
	a.settled(c, order, done, err)
}

// CancelOrder serves POST /v1/orders/{id}/cancel.
func (a *API) CancelOrder(ctx context.Context, c *app.RequestContext) {
	id, problem := orderID(c)
	var buyer string
	if problem == nil {
		buyer, problem = Buyer(c)
	}
	if problem == nil {
		_, problem = a.flag(c, "")
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	done, err := a.Settlements.Cancel(ctx, id, buyer, "buyer")
	a.settled(c, id, done, err)
}

// ShowOrder serves GET /admin/v1/orders/{id}.
func (a *API) ShowOrder(ctx context.Context, c *app.RequestContext) {
	id, problem := orderID(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	order, err := a.Settlements.AnyOrder(ctx, id)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: OrderNotFound, Field: "id"}).Write(c)
	case err != nil:
		a.fail(c, err)
	default:
		a.json(c, 200, order)
	}
}

// CancelAnyOrder serves POST /admin/v1/orders/{id}/cancel.
func (a *API) CancelAnyOrder(ctx context.Context, c *app.RequestContext) {
	id, problem := orderID(c)
	if problem == nil {
		_, problem = a.flag(c, "")
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	done, err := a.Settlements.Cancel(ctx, id, "", Operator(c).Name)
	a.settled(c, id, done, err)
}

// settled answers with what became of a change: the order as it stands, or why it is not as asked for.
func (a *API) settled(c *app.RequestContext, id sale.OrderID, done sale.Settled, err error) {
	switch {
	case errors.Is(err, service.ErrOutcomeUnknown):
		(&Problem{Code: Busy, Reason: sale.ReasonDependency, Unknown: true, OrderID: id}).Write(c)
		return
	case err != nil:
		a.fail(c, err)
		return
	}
	switch done.Outcome {
	case sale.Changed, sale.Already:
		c.Response.Header.Set("Cache-Control", "no-store")
		if done.Outcome == sale.Already {
			c.Response.Header.Set("Idempotent-Replayed", "true")
		}
		a.json(c, 200, done.Order)
	case sale.NoOrder:
		(&Problem{Code: OrderNotFound, Field: "id"}).Write(c)
	case sale.StillQueued:
		(&Problem{Code: OrderQueued}).Write(c)
	case sale.IsPaid:
		(&Problem{Code: OrderPaid}).Write(c)
	case sale.RefundRequired:
		(&Problem{Code: RefundRequired, Reason: done.Order.Reason}).Write(c)
	case sale.PaymentReused:
		(&Problem{Code: PaymentReused, Field: "payment_id"}).Write(c)
	default:
		a.fail(c, errors.New("a settlement ended with outcome "+strconv.Itoa(int(done.Outcome))))
	}
}

// payment decodes {"payment_id": …, "order_id": …}.
func (d *decoder) payment() (order sale.OrderID, payment string, problem *Problem) {
	const anID, aPayment = "a UUID of 36 characters", "a string of 1 to 128 bytes of printable UTF-8"
	found := false
	problem = d.members(func(name []byte) (known bool, problem *Problem) {
		switch string(name) {
		case "payment_id":
			payment, problem = d.text("payment_id", aPayment)
		case "order_id":
			var text string
			if text, problem = d.text("order_id", anID); problem == nil {
				var err error
				order, err = sale.ParseOrderID(text)
				found = err == nil
			}
		default:
			return false, nil
		}
		return true, problem
	})
	switch {
	case problem != nil:
	case !service.ValidPayment(payment):
		problem = badInput(InvalidField, "payment_id", "must be "+aPayment)
	case !found:
		problem = badInput(InvalidField, "order_id", "must be "+anID)
	}
	return order, payment, problem
}
