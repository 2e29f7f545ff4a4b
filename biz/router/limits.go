package router

import (
	"context"
	"net/netip"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

// Verdict is a bucket's answer to one request.
type Verdict struct {
	OK         bool
	Limit      int           // requests that a full bucket admits at once; 0: nothing limits
	Remaining  int           // requests that would be admitted right after this one
	Reset      time.Duration // until the bucket is full again
	RetryAfter time.Duration // of a refusal: until the next request is admitted
}

// Limits holds the node's buckets. Each call takes one token, or says no.
type Limits interface {
	Global() Verdict
	Address(netip.Addr) Verdict
	Buyer(string) Verdict
}

// Winners remembers the orders that this node accepted lately.
type Winners interface {
	Has(sale.OrderID) bool
}

// Results counts answers to purchases, each code apart.
type Results interface {
	Count(sale.Code)
}

// purchasePath is the route of purchases, below /v1.
const purchasePath = "/skus/:sku/orders"

// limits turns requests away before they cost anything.
type limits struct {
	buckets Limits
	winners Winners
	results Results
	load    Load
	tokens  *auth.PurchaseTokens
	clients *clients
}

// node asks the node's bucket alone. Payment callbacks all come from the provider's few addresses.
func (l *limits) node(ctx context.Context, c *app.RequestContext) {
	if v := l.buckets.Global(); !v.OK {
		l.refuse(c, v)
		return
	}
	c.Next(ctx)
}

// entrance asks the buckets that every public call pays into: the node's, then the address's.
func (l *limits) entrance(ctx context.Context, c *app.RequestContext) {
	if v := l.buckets.Global(); !v.OK {
		l.refuse(c, v)
		return
	}
	if addr, pays := l.clients.bucketKey(c); pays {
		if v := l.buckets.Address(addr); !v.OK {
			l.refuse(c, v)
			return
		}
	}
	c.Next(ctx)
}

// purchase asks the buyer's bucket, unless a winner asks again.
func (l *limits) purchase(ctx context.Context, c *app.RequestContext) {
	buyer, problem := handler.Buyer(c)
	if problem != nil || l.wonBefore(c, buyer) {
		c.Next(ctx)
		return
	}
	l.pay(ctx, c, buyer)
}

// buyer asks the buyer's bucket. Input that the handler will refuse does not pay: it names no buyer that could be believed.
func (l *limits) buyer(ctx context.Context, c *app.RequestContext) {
	buyer, problem := handler.Buyer(c)
	if problem != nil {
		c.Next(ctx)
		return
	}
	l.pay(ctx, c, buyer)
}

func (l *limits) pay(ctx context.Context, c *app.RequestContext, buyer string) {
	v := l.buckets.Buyer(buyer)
	if !v.OK {
		l.refuse(c, v)
		return
	}
	tell(c, v)
	c.Next(ctx)
}

// wonBefore tells whether this node accepted an order of this request lately.
func (l *limits) wonBefore(c *app.RequestContext, buyer string) bool {
	sku, problem := handler.SKU(c)
	if problem != nil {
		return false
	}
	if token, given, problem := handler.PurchaseToken(c, l.tokens, sku, buyer); given {
		return problem == nil && l.winners.Has(token.Order)
	}
	key, problem := handler.Key(c)
	return problem == nil && key != "" && l.winners.Has(sale.DeriveOrderID(sku, buyer, key))
}

func (l *limits) refuse(c *app.RequestContext, v Verdict) {
	l.count(c, sale.RateLimited)
	(&handler.Problem{Code: handler.RateLimited, RetryAfter: v.RetryAfter}).Write(c)
	tell(c, v)
	c.Abort()
}

// tell writes the RateLimit headers; times are whole seconds, rounded up.
func tell(c *app.RequestContext, v Verdict) {
	if v.Limit == 0 {
		return
	}
	handler.SetInt(c, "RateLimit-Limit", int64(v.Limit))
	handler.SetInt(c, "RateLimit-Remaining", int64(max(v.Remaining, 0)))
	handler.SetInt(c, "RateLimit-Reset", int64((v.Reset+time.Second-1)/time.Second))
}
