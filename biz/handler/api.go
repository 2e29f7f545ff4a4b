// Package handler turns HTTP requests into calls of the use cases and their results into answers: one file a resource.
// Everything taken from a request is copied, because hertz uses its buffers again.
package handler

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

// Parts are what an API is made of.
type Parts struct {
	Sales  Sales
	Orders Orders
	Stock  Stock
	SKUs   SKUs
	Upkeep Upkeep
	Health Health
	Doctor Doctor

	Settlements Settlements
	DeadLetters DeadLetters
	Webhooks    *Webhooks
	Tokens      *auth.PurchaseTokens // without a secret: PURCHASE_TOKENS_DISABLED
	Toggles     Toggles
	AuditLog    AuditLog
	Node        NodeFigures

	Streams *Streams
	Now     func() time.Time
	Log     *slog.Logger
}

// API holds the handlers of both listeners. Its methods may be called by many goroutines.
type API struct {
	Parts
	decoders decoders
}

// New returns the handlers.
func New(p Parts) *API { return &API{Parts: p} }

// json answers with v.
func (a *API) json(c *app.RequestContext, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Response.SetStatusCode(status)
	c.Response.Header.SetContentType(jsonType)
	c.Response.SetBody(body)
}

// fail answers an error of a use case that has no code of its own. A missing dependency is BUSY, anything unforeseen is
// logged here, once.
func (a *API) fail(c *app.RequestContext, err error) {
	if problem := inputProblem(err); problem != nil {
		problem.Write(c)
		return
	}
	switch {
	case errors.Is(err, sale.ErrQueueFull):
		(&Problem{Code: Busy, Reason: sale.ReasonQueueFull}).Write(c)
	case errors.Is(err, sale.ErrShuttingDown), errors.Is(err, sale.ErrNotSent), errors.Is(err, sale.ErrUnavailable),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		(&Problem{Code: Busy, Reason: sale.ReasonDependency}).Write(c)
	default:
		a.Log.Error("request failed", "error", err, "route", c.FullPath(), "request_id", string(requestID(c)))
		(&Problem{Code: Internal}).Write(c)
	}
}

// inputProblem is the problem of an *sale.InputError, nil for any other error.
func inputProblem(err error) *Problem {
	var input *sale.InputError
	if !errors.As(err, &input) {
		return nil
	}
	return badInput(InvalidField, input.Field, input.Detail)
}
