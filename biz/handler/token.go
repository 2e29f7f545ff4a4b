package handler

import (
	"context"
	"errors"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

// What purchase_token of a SKU says.
const (
	tokenOptional = "optional"
	tokenRequired = "required"
)

func tokenUse(required bool) string {
	if required {
		return tokenRequired
	}
	return tokenOptional
}

// TokenHeader carries a purchase token.
const TokenHeader = "Purchase-Token"

// checkedToken keeps a purchase token that was checked with its request, because the limits look at it before the handler.
const checkedToken = "stockade.purchase-token"

// TokenJSON is the answer of POST /v1/skus/{sku}/token.
type TokenJSON struct {
	Token     string       `json:"token"`
	OrderID   sale.OrderID `json:"order_id"` // of the order that a purchase with this token makes
	SKU       string       `json:"sku"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// IssueToken serves POST /v1/skus/{sku}/token, whose body is empty or {}.
func (a *API) IssueToken(ctx context.Context, c *app.RequestContext) {
	sku, buyer, problem := a.tokenRequest(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	refused, may, err := a.Sales.MayIssueToken(ctx, sku)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: SKUNotFound, Field: "sku"}).Write(c)
		return
	case err != nil:
		a.fail(c, err)
		return
	case !may:
		writeRefusal(c, &refused)
		return
	}
	text, token, err := a.Tokens.Issue(sku, buyer)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Response.Header.Set("Cache-Control", "no-store")
	a.json(c, 200, TokenJSON{Token: text, OrderID: token.Order, SKU: sku, ExpiresAt: token.ExpiresAt})
}

func (a *API) tokenRequest(c *app.RequestContext) (sku, buyer string, problem *Problem) {
	if sku, problem = SKU(c); problem != nil {
		return sku, buyer, problem
	}
	if buyer, problem = Buyer(c); problem != nil {
		return sku, buyer, problem
	}
	if !a.Tokens.Enabled() {
		return sku, buyer, &Problem{Code: TokensDisabled}
	}
	d := a.decoders.get()
	defer a.decoders.put(d)
	return sku, buyer, d.nothing(c)
}

// PurchaseToken returns what the purchase token of a buyer's request for a SKU says, or the problem with it. given is false
// when there is none. A token is checked once in a request.
func PurchaseToken(
	c *app.RequestContext, tokens *auth.PurchaseTokens, sku, buyer string,
) (token auth.PurchaseToken, given bool, problem *Problem) {
	values := c.Request.Header.PeekAll(TokenHeader)
	switch {
	case len(values) == 0:
		return token, false, nil
	case len(values) > 1:
		return token, true, badInput(BadRequest, TokenHeader, "must be given at most once")
	case !tokens.Enabled():
		return token, true, &Problem{Code: TokensDisabled}
	}
	if known, ok := c.Get(checkedToken); ok {
		return known.(auth.PurchaseToken), true, nil
	}
	token, err := tokens.Check(string(values[0]), sku, buyer)
	if err != nil {
		return token, true, &Problem{Code: TokenRefused, Field: TokenHeader}
	}
	c.Set(checkedToken, token)
	return token, true, nil
}
