package router

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

// Load knows how much the node has in hand.
type Load interface {
	// Enter counts a request in; false: the node has as many as it may, and does not count it.
	Enter() bool
	// Leave counts it out.
	Leave()
	// Shed tells whether the next purchase is to be refused, because the machine has more to do than it can.
	Shed() bool
}

// streamPath is the route of event streams, which are open for minutes and have a limit of their own.
const streamPath = "/v1/orders/:id/events"

// noLoad refuses nothing.
type noLoad struct{}

func (noLoad) Enter() bool { return true }
func (noLoad) Leave()      {}
func (noLoad) Shed() bool  { return false }

// inHand counts requests while they are answered, up to the most that there may be. Event streams pass uncounted.
func (l *limits) inHand(ctx context.Context, c *app.RequestContext) {
	if c.FullPath() == streamPath {
		c.Next(ctx)
		return
	}
	if !l.load.Enter() {
		l.overload(c)
		return
	}
	defer l.load.Leave()
	c.Next(ctx)
}

// shed refuses a part of the purchases while the machine has more to do than it can, before they cost anything.
func (l *limits) shed(ctx context.Context, c *app.RequestContext) {
	if l.load.Shed() {
		l.overload(c)
		return
	}
	c.Next(ctx)
}

func (l *limits) overload(c *app.RequestContext) {
	l.count(c, sale.Busy)
	(&handler.Problem{Code: handler.Busy, Reason: sale.ReasonOverload}).Write(c)
	c.Abort()
}

// count counts the answer to a purchase that ends here.
func (l *limits) count(c *app.RequestContext, code sale.Code) {
	if l.results != nil && c.FullPath() == "/v1"+purchasePath {
		l.results.Count(code)
	}
}
