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
	// Purchase returns a verdict, or *sale.InputError, sale.ErrNotFound for an unknown SKU, sale.ErrKeyReused,
	// sale.ErrPurchaseTokenRequired, sale.ErrPurchaseTokenExpired. ctx ends when the client hangs up.
	Purchase(ctx context.Context, req service.PurchaseRequest) (sale.Result, error)
	// MayIssueToken tells whether buyers may have purchase tokens of a SKU now; if not, refused is the verdict that says
	// why. sale.ErrNotFound for an unknown SKU.
	MayIssueToken(ctx context.Context, sku string) (refused sale.Result, may bool, err error)
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
		(&Problem{Code: KeyReused, Field: keyOf(req), Detail: "belongs to a request with another quantity"}).Write(c)
	case errors.Is(err, sale.ErrPurchaseTokenRequired):
		(&Problem{Code: TokenRequired, Field: TokenHeader}).Write(c)
	case errors.Is(err, sale.ErrPurchaseTokenExpired):
		(&Problem{Code: TokenExpired, Field: TokenHeader}).Write(c)
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
	token, tokened, problem := PurchaseToken(c, a.Tokens, req.SKU, req.Buyer)
	switch {
	case tokened && req.Key != "":
		return req, badInput(BadRequest, KeyHeader, "must not be given with a "+TokenHeader+", whose id names the order")
	case problem != nil:
		return req, problem
	}
	req.Order, req.Expired = token.Order, token.Expired
	d := a.decoders.get()
	defer a.decoders.put(d)
	if problem = d.read(c); problem != nil {
		return req, problem
	}
	req.Quantity, problem = d.purchase()
	return req, problem
}

// keyOf is the header that makes the request one that can be repeated.
func keyOf(req service.PurchaseRequest) string {
	if req.Order != (sale.OrderID{}) {
		return TokenHeader
	}
	return KeyHeader
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
	}
	p.Unknown, p.OrderID = r.Unknown, r.Order.ID
	p.Write(c)
}
