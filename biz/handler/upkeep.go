package handler

import (
	"context"
	"errors"
	"strconv"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Upkeep lays stock out, compares books, and ends SKUs. Its errors are those of SKUs, and of CloseOut
// *service.UnfinishedError and *service.DisagreementError.
type Upkeep interface {
	Reshare(ctx context.Context, sku string, full bool) (sale.Listing, error)
	// Slots takes 0 for as many as the total calls for.
	Slots(ctx context.Context, sku string, slots int) (sale.Listing, error)
	Path(ctx context.Context, sku string, mode sale.Mode) (sale.Listing, error)
	Audit(ctx context.Context, sku string) (service.Audit, error)
	Reconcile(ctx context.Context, sku string, fix bool) (service.Reconciliation, error)
	CloseOut(ctx context.Context, sku string) (service.CloseoutReport, error)
	CloseoutReport(ctx context.Context, sku string) (service.CloseoutReport, error)
}

// ReshareSKU serves POST /admin/v1/skus/{sku}/reshare.
func (a *API) ReshareSKU(ctx context.Context, c *app.RequestContext) {
	full, problem := a.flag(c, "full")
	if problem != nil {
		problem.Write(c)
		return
	}
	a.listing(ctx, c, func(ctx context.Context, sku string) (sale.Listing, error) {
		return a.Upkeep.Reshare(ctx, sku, full)
	})
}

// SetSlots serves POST /admin/v1/skus/{sku}/slots.
func (a *API) SetSlots(ctx context.Context, c *app.RequestContext) {
	slots, given := 0, false
	problem := a.body(c, func(d *decoder, name string) (known bool, problem *Problem) {
		if name == "slots" {
			given = true
			slots, problem = d.slots()
		}
		return given, problem
	})
	if problem == nil && !given {
		problem = badInput(InvalidField, "slots", "must be \"auto\" or a whole number from 1 to "+strconv.Itoa(sale.MaxSlots))
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	a.listing(ctx, c, func(ctx context.Context, sku string) (sale.Listing, error) {
		return a.Upkeep.Slots(ctx, sku, slots)
	})
}

// SetPath serves POST /admin/v1/skus/{sku}/path.
func (a *API) SetPath(ctx context.Context, c *app.RequestContext) {
	const what = "redis or mysql"
	var path string
	problem := a.body(c, func(d *decoder, name string) (known bool, problem *Problem) {
		if name != "path" {
			return false, nil
		}
		path, problem = d.text("path", what)
		return true, problem
	})
	if mode := sale.Mode(path); problem == nil && mode != sale.ModeRedis && mode != sale.ModeMySQL {
		problem = badInput(InvalidField, "path", "must be "+what)
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	a.listing(ctx, c, func(ctx context.Context, sku string) (sale.Listing, error) {
		return a.Upkeep.Path(ctx, sku, sale.Mode(path))
	})
}

// AuditSKU serves GET /admin/v1/skus/{sku}/audit.
func (a *API) AuditSKU(ctx context.Context, c *app.RequestContext) {
	serveSKU(ctx, a, c, a.Upkeep.Audit, same[service.Audit])
}

// ReconcileSKU serves POST /admin/v1/skus/{sku}/reconcile.
func (a *API) ReconcileSKU(ctx context.Context, c *app.RequestContext) {
	fix, problem := a.flag(c, "fix")
	if problem != nil {
		problem.Write(c)
		return
	}
	serveSKU(ctx, a, c, func(ctx context.Context, sku string) (service.Reconciliation, error) {
		return a.Upkeep.Reconcile(ctx, sku, fix)
	}, same[service.Reconciliation])
}

// CloseOutSKU serves POST /admin/v1/skus/{sku}/closeout.
func (a *API) CloseOutSKU(ctx context.Context, c *app.RequestContext) {
	if _, problem := a.flag(c, ""); problem != nil {
		problem.Write(c)
		return
	}
	serveSKU(ctx, a, c, a.Upkeep.CloseOut, same[service.CloseoutReport])
}

// ShowCloseout serves GET /admin/v1/skus/{sku}/closeout.
func (a *API) ShowCloseout(ctx context.Context, c *app.RequestContext) {
	serveSKU(ctx, a, c, a.Upkeep.CloseoutReport, same[service.CloseoutReport])
}

func same[T any](v T) T { return v }

// flag reads a body with at most one member, which is true or false; without a body it is false. An empty name allows no
// member.
func (a *API) flag(c *app.RequestContext, name string) (value bool, problem *Problem) {
	problem = a.body(c, func(d *decoder, member string) (bool, *Problem) {
		if name == "" || member != name {
			return false, nil
		}
		var problem *Problem
		value, problem = d.boolean(name)
		return true, problem
	})
	return value, problem
}

// body reads a body that may be missing and hands its members over.
func (a *API) body(c *app.RequestContext, member func(d *decoder, name string) (known bool, problem *Problem)) *Problem {
	d := a.decoders.get()
	defer a.decoders.put(d)
	problem := d.readNoted(c)
	if problem != nil || len(d.raw) == 0 {
		return problem
	}
	return d.members(func(name []byte) (bool, *Problem) { return member(d, string(name)) })
}

// refusedUpkeep is the problem of a close-out that was refused, nil for any other error.
func refusedUpkeep(err error) *Problem {
	var unfinished *service.UnfinishedError
	var differ *service.DisagreementError
	switch {
	case errors.As(err, &unfinished):
		return &Problem{Code: NotFinished, Detail: unfinished.Error()}
	case errors.As(err, &differ):
		return &Problem{Code: BooksDisagree, Detail: differ.Error()}
	}
	return nil
}

// boolean reads true or false.
func (d *decoder) boolean(field string) (bool, *Problem) {
	v, problem := d.scalar()
	if problem != nil {
		return false, problem
	}
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, badInput(InvalidField, field, "must be true or false")
}
