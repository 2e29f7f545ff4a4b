package router

import (
	"context"
	"errors"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

const authorization = "Authorization"

// identity finds out which buyer makes a request. Behind it X-Buyer-Id names a buyer who is who they say, or is not there.
type identity struct {
	buyers *auth.Buyers                         // nil: nobody is known
	count  func(*app.RequestContext, sale.Code) // a verdict that ends here
}

// required lets requests through whose buyer is known.
func (i *identity) required(ctx context.Context, c *app.RequestContext) {
	if i.known(c, false) {
		c.Next(ctx)
	}
}

// purchase is required for a purchase: one that a server signed must name its order, because the nodes do not know each
// other's nonces.
func (i *identity) purchase(ctx context.Context, c *app.RequestContext) {
	if i.known(c, true) {
		c.Next(ctx)
	}
}

// known tells whether the buyer is known; if not, the request is answered.
func (i *identity) known(c *app.RequestContext, purchase bool) bool {
	problem, err := i.find(c, purchase)
	if problem == nil && err == nil {
		return true
	}
	var refusal *auth.Refusal
	switch {
	case errors.As(err, &refusal):
		(&handler.Problem{Code: handler.Unauthenticated, Field: refusal.Header, Detail: refusal.Detail}).Write(c)
		c.Response.Header.Set("WWW-Authenticate", refusal.Challenge)
	case errors.Is(err, auth.ErrNoncesFull):
		i.count(c, sale.Busy)
		(&handler.Problem{Code: handler.Busy, Reason: sale.ReasonQueueFull, Detail: err.Error()}).Write(c)
	case problem != nil:
		problem.Write(c)
	}
	c.Abort()
	return false
}

// find chooses the way by what the request shows: a signature before a token before what a gateway says.
func (i *identity) find(c *app.RequestContext, purchase bool) (*handler.Problem, error) {
	switch {
	case i.buyers == nil:
		return nil, &auth.Refusal{Header: handler.BuyerHeader, Detail: "nobody is known here", Challenge: "Bearer"}
	case len(c.Request.Header.Peek(auth.SignatureHeader)) > 0:
		return i.bySignature(c, purchase)
	case len(c.Request.Header.Peek(authorization)) > 0:
		return i.byToken(c)
	}
	// Handlers read what the gateway says, and say what is wrong with it.
	return nil, i.buyers.Gateway(peerAddress(c.RemoteAddr()))
}

func (i *identity) byToken(c *app.RequestContext) (*handler.Problem, error) {
	given := c.Request.Header.PeekAll(authorization)
	if len(given) > 1 {
		return onceProblem(authorization), nil
	}
	buyer, err := i.buyers.Bearer(string(given[0]))
	if err != nil {
		return nil, err
	}
	// Set alone would leave the second of two headers.
	c.Request.Header.Del(handler.BuyerHeader)
	c.Request.Header.Set(handler.BuyerHeader, buyer)
	return nil, nil
}

func (i *identity) bySignature(c *app.RequestContext, purchase bool) (*handler.Problem, error) {
	given := c.Request.Header.PeekAll(auth.SignatureHeader)
	if len(given) > 1 {
		return onceProblem(auth.SignatureHeader), nil
	}
	signature, err := i.buyers.ReadSignature(string(given[0]))
	if err != nil {
		return nil, err
	}
	signed := auth.SignedRequest{Method: string(c.Method()), Target: string(c.Request.RequestURI())}
	var problem *handler.Problem
	if signed.Buyer, problem = handler.Buyer(c); problem != nil {
		return problem, nil
	}
	if signed.Key, problem = handler.Key(c); problem != nil {
		return problem, nil
	}
	if tokens := c.Request.Header.PeekAll(handler.TokenHeader); len(tokens) > 1 {
		return onceProblem(handler.TokenHeader), nil
	} else if len(tokens) == 1 {
		signed.Token = string(tokens[0])
	}
	if purchase && signed.Key == "" && signed.Token == "" {
		return &handler.Problem{
			Code: handler.BadRequest, Field: handler.KeyHeader, Detail: "must be given with a signed purchase, or a " + handler.TokenHeader,
		}, nil
	}
	if signed.Body, problem = handler.Body(c); problem != nil {
		return problem, nil
	}
	return nil, i.buyers.Verify(signature, signed)
}

func onceProblem(header string) *handler.Problem {
	return &handler.Problem{Code: handler.BadRequest, Field: header, Detail: "must be given once"}
}
