package handler

import (
	"context"
	"errors"
	"strconv"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Sales is the purchase use case.
type Sales interface {
	// Purchase returns a verdict, or *sale.InputError, sale.ErrNotFound for an unknown SKU, sale.ErrKeyReused. ctx ends
	// when the client hangs up.
	Purchase(ctx context.Context, req service.PurchaseRequest) (sale.Result, error)
}

// Purchase serves POST /v1/skus/{sku}/orders.
func (a *API) Purchase(ctx context.Context, c *app.RequestContext) {
	req, problem := a.purchaseRequest(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	result, err := a.Sales.Purchase(ctx, req)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: SKUNotFound, Field: "sku"}).Write(c)
	case errors.Is(err, sale.ErrKeyReused):
		(&Problem{Code: KeyReused, Field: KeyHeader, Detail: "belongs to a request with another quantity"}).Write(c)
	case err != nil:
		a.fail(c, err)
	case result.Code == sale.Accepted:
		writeAccepted(c, req.SKU, &result)
	default:
		writeRefusal(c, &result)
	}
}

func (a *API) purchaseRequest(c *app.RequestContext) (req service.PurchaseRequest, problem *Problem) {
	if req.SKU, problem = SKU(c); problem != nil {
		return req, problem
	}
	if req.Buyer, problem = Buyer(c); problem != nil {
		return req, problem
	}
	if req.Key, problem = Key(c); problem != nil {
		return req, problem
	}
	d := a.decoders.get()
	defer a.decoders.put(d)
	if problem = d.read(c); problem != nil {
		return req, problem
	}
	req.Quantity, problem = d.purchase()
	return req, problem
}

func writeAccepted(c *app.RequestContext, sku string, r *sale.Result) {
	id := r.Order.ID.String()
	var location [128]byte
	at := append(append(location[:0], "/v1/orders/"...), id...)
	c.Response.Header.SetBytesV("Location", append(append(at, "?sku="...), sku...))
	if r.Replayed {
		c.Response.Header.Set("Idempotent-Replayed", "true")
	}
	c.Response.SetStatusCode(202)
	c.Response.Header.SetContentType(jsonType)

	buf := c.Response.BodyBuffer()
	b := append(append(buf.B[:0], `{"order_id":"`...), id...)
	b = append(append(b, `","state":"`...), r.Order.State...)
	if r.Order.Reason != "" {
		b = append(append(b, `","reason":"`...), r.Order.Reason...)
	}
	b = append(append(b, `","code":"`...), sale.Accepted.String()...)
	b = strconv.AppendInt(append(b, `","result":`...), int64(sale.Accepted), 10)
	buf.B = append(b, '}')
}

// refusal is the code of a verdict that is not ACCEPTED.
func refusal(code sale.Code) Code {
	switch code {
	case sale.SoldOut:
		return SoldOut
	case sale.NotOnSale:
		return NotOnSale
	case sale.LimitReached:
		return LimitReached
	case sale.RateLimited:
		return RateLimited
	case sale.Retry:
		return Retry
	}
	return Busy
}

func writeRefusal(c *app.RequestContext, r *sale.Result) {
	p := Problem{Code: refusal(r.Code), Reason: r.Reason}
	switch p.Code {
	case LimitReached:
		p.Limit = r.SKU.Limit
	case NotOnSale:
		p.OpensAt, p.ClosesAt = r.SKU.OpensAt, r.SKU.ClosesAt
	case Busy:
		p.Unknown, p.OrderID = r.Unknown, r.Order.ID
	}
	p.Write(c)
}
