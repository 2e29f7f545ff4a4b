package handler

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// DeadLetters looks after messages that could not be turned into orders. sale.ErrNotFound; Replay and Drop return
// sale.ErrConflict for one that is not OPEN, and Drop the errors of Settlements too.
type DeadLetters interface {
	List(ctx context.Context, f sale.DeadFilter) ([]sale.DeadLetter, error)
	Show(ctx context.Context, seq int64) (sale.DeadLetter, error)
	Replay(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error)
	Drop(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error)
}

// DeadLetterPage is the answer of GET /admin/v1/dead.
type DeadLetterPage struct {
	DeadLetters []sale.DeadLetter `json:"dead_letters"`
	Next        string            `json:"next,omitempty"` // cursor of the next page; missing on the last one
}

// ListDead serves GET /admin/v1/dead.
func (a *API) ListDead(ctx context.Context, c *app.RequestContext) {
	filter, problem := deadFilter(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	letters, err := a.DeadLetters.List(ctx, filter)
	if err != nil {
		a.fail(c, err)
		return
	}
	page := DeadLetterPage{DeadLetters: letters}
	if page.DeadLetters == nil {
		page.DeadLetters = []sale.DeadLetter{}
	}
	if len(letters) == filter.Limit {
		page.Next = strconv.FormatInt(letters[len(letters)-1].Seq, 10)
	}
	a.json(c, 200, page)
}

func deadFilter(c *app.RequestContext) (f sale.DeadFilter, problem *Problem) {
	if f.Limit, problem = pageLimit(c); problem != nil {
		return f, problem
	}
	if raw, given := c.GetQuery("state"); given {
		f.State = sale.DeadState(strings.Clone(raw))
		switch f.State {
		case sale.DeadOpen, sale.DeadReplayed, sale.DeadCompensated, sale.DeadDropped:
		default:
			return f, badInput(BadRequest, "state", "must be OPEN, REPLAYED, COMPENSATED or DROPPED")
		}
	}
	if raw, given := c.GetQuery("sku"); given {
		f.SKU = strings.Clone(raw)
		if !sale.ValidSKUID(f.SKU) {
			return f, badInput(BadRequest, "sku", "must match "+sale.SKUIDPattern)
		}
	}
	if raw, given := c.GetQuery("after"); given {
		var err error
		if f.After, err = strconv.ParseInt(raw, 10, 64); err != nil || f.After < 0 {
			return f, badInput(BadRequest, "after", "must be the next of an earlier page")
		}
	}
	return f, nil
}

// ShowDead serves GET /admin/v1/dead/{seq}.
func (a *API) ShowDead(ctx context.Context, c *app.RequestContext) {
	seq, problem := deadSeq(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	letter, err := a.DeadLetters.Show(ctx, seq)
	a.deadLetter(c, letter, err)
}

// ReplayDead serves POST /admin/v1/dead/{seq}/replay.
func (a *API) ReplayDead(ctx context.Context, c *app.RequestContext) {
	a.handleDead(ctx, c, a.DeadLetters.Replay)
}

// DropDead serves POST /admin/v1/dead/{seq}/drop.
func (a *API) DropDead(ctx context.Context, c *app.RequestContext) {
	a.handleDead(ctx, c, a.DeadLetters.Drop)
}

func (a *API) handleDead(
	ctx context.Context, c *app.RequestContext, handle func(context.Context, int64, string) (sale.DeadLetter, error),
) {
	seq, problem := deadSeq(c)
	if problem == nil {
		_, problem = a.flag(c, "")
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	letter, err := handle(ctx, seq, Operator(c).Name)
	a.deadLetter(c, letter, err)
}

func (a *API) deadLetter(c *app.RequestContext, letter sale.DeadLetter, err error) {
	switch {
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: DeadLetterNotFound, Field: "seq"}).Write(c)
	case errors.Is(err, sale.ErrConflict):
		(&Problem{Code: DeadLetterHandled, Detail: "it is " + string(letter.State)}).Write(c)
	case errors.Is(err, service.ErrOutcomeUnknown):
		unknown := &Problem{Code: Busy, Reason: sale.ReasonDependency}
		if letter.Order != nil {
			unknown.Unknown, unknown.OrderID = true, *letter.Order
		}
		unknown.Write(c)
	case err != nil:
		a.fail(c, err)
	default:
		a.json(c, 200, letter)
	}
}

// deadSeq returns the path parameter seq.
func deadSeq(c *app.RequestContext) (int64, *Problem) {
	seq, err := strconv.ParseInt(c.Param("seq"), 10, 64)
	if err != nil || seq < 1 {
		return 0, badInput(BadRequest, "seq", "must be the number of a dead letter")
	}
	return seq, nil
}
