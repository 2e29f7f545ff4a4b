package router

import (
	"context"
	"net/netip"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

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

// limits turns requests away before they cost anything.
type limits struct {
	buckets Limits
	winners Winners
	clients *clients
}

// node asks the node's bucket alone. Payment callbacks all come from the provider's few addresses.
func (l *limits) node(ctx context.Context, c *app.RequestContext) {
	if v := l.buckets.Global(); !v.OK {
		refuse(c, v)
		return
	}
	c.Next(ctx)
}

// entrance asks the buckets that every public call pays into: the node's, then the address's.
func (l *limits) entrance(ctx context.Context, c *app.RequestContext) {
	if v := l.buckets.Global(); !v.OK {
		refuse(c, v)
		return
	}
	if addr, pays := l.clients.bucketKey(c); pays {
		if v := l.buckets.Address(addr); !v.OK {
			refuse(c, v)
			return
		}
	}
	c.Next(ctx)
}

// buyer asks the buyer's bucket for a purchase. A winner who asks again does not pay. Input that the handler will refuse
// does not either: it names no buyer that could be believed.
func (l *limits) buyer(ctx context.Context, c *app.RequestContext) {
	buyer, problem := handler.Buyer(c)
	if problem != nil || l.wonBefore(c, buyer) {
		c.Next(ctx)
		return
	}
	v := l.buckets.Buyer(buyer)
	if !v.OK {
		refuse(c, v)
		return
	}
	tell(c, v)
	c.Next(ctx)
}

func (l *limits) wonBefore(c *app.RequestContext, buyer string) bool {
	key, problem := handler.Key(c)
	if problem != nil || key == "" {
		return false
	}
	sku, problem := handler.SKU(c)
	return problem == nil && l.winners.Has(sale.DeriveOrderID(sku, buyer, key))
}

func refuse(c *app.RequestContext, v Verdict) {
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
