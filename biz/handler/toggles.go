package handler

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/sale"
	"stockade/biz/service"
)

// Bounds of a toggle's end.
const (
	minToggleFor = time.Second
	maxToggleFor = 30 * 24 * time.Hour
)

// Toggles are an operator's switches. Errors are *sale.InputError and sale.ErrUnavailable; of Set sale.ErrNotFound for a SKU
// that there is not, and for the path of one SKU *sale.StateError and sale.ErrConflict too.
type Toggles interface {
	List(ctx context.Context) []service.ToggleState
	// Set tells, of the path, what became of each SKU.
	Set(ctx context.Context, t sale.Toggle) ([]service.PathMove, error)
	// Clear forgets what is stored; an empty scope is the one for all SKUs.
	Clear(ctx context.Context, name, scope string) error
}

// TogglesJSON is the answer of GET /admin/v1/toggles and of a change.
type TogglesJSON struct {
	Toggles []service.ToggleState `json:"toggles"`         // as they are in effect on this node
	Moves   []service.PathMove    `json:"moves,omitempty"` // of a change of the path
}

// ListToggles serves GET /admin/v1/toggles.
func (a *API) ListToggles(ctx context.Context, c *app.RequestContext) {
	a.json(c, 200, TogglesJSON{Toggles: a.Toggles.List(ctx)})
}

// SetToggle serves PUT /admin/v1/toggles/{name}.
func (a *API) SetToggle(ctx context.Context, c *app.RequestContext) {
	name, problem := toggleName(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	toggle := sale.Toggle{Name: name}
	d := a.decoders.get()
	defer a.decoders.put(d)
	if problem = d.readNoted(c); problem == nil {
		problem = d.toggle(&toggle, a.Now())
	}
	audited(c).Target, audited(c).Reason = toggleTarget(toggle.Name, toggle.Scope), toggle.Reason
	toggle.Actor = Operator(c).Name
	if problem == nil && toggle.Name == sale.TogglePath && !Operator(c).Role.May(auth.RoleAdmin) {
		problem = &Problem{Code: Forbidden, Detail: "the path needs the role " + string(auth.RoleAdmin)}
	}
	if problem != nil {
		problem.Write(c)
		return
	}
	moves, err := a.Toggles.Set(ctx, toggle)
	if err != nil {
		a.failSKU(c, err)
		return
	}
	a.json(c, 200, TogglesJSON{Toggles: a.Toggles.List(ctx), Moves: moves})
}

// ClearToggle serves DELETE /admin/v1/toggles/{name}, for one SKU with the query parameter scope. A slip in the parameter
// must not clear the toggle for all.
func (a *API) ClearToggle(ctx context.Context, c *app.RequestContext) {
	name, problem := toggleName(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	var scope string
	given := 0
	c.QueryArgs().VisitAll(func(key, value []byte) {
		if given++; string(key) != "scope" || len(value) == 0 || given > 1 {
			problem = badInput(BadRequest, quoteName(string(key)), "the only parameter is scope, a SKU's id, at most once")
		}
		scope = string(value)
	})
	if problem != nil {
		problem.Write(c)
		return
	}
	audited(c).Target = toggleTarget(name, scope)
	if err := a.Toggles.Clear(ctx, name, scope); err != nil {
		a.failSKU(c, err)
		return
	}
	a.json(c, 200, TogglesJSON{Toggles: a.Toggles.List(ctx)})
}

// toggleName returns the path parameter name, or the problem that names it.
func toggleName(c *app.RequestContext) (string, *Problem) {
	name, err := url.PathUnescape(strings.Clone(c.Param("name"))) // a lane's has colons, and may have brackets
	if _, known := sale.ToggleKindOf(name); err != nil || !known {
		return "", badInput(BadRequest, "name", "must be a toggle's name; GET /admin/v1/toggles lists them")
	}
	return name, nil
}

// toggleTarget is a toggle as the audit log names it.
func toggleTarget(name, scope string) string { return strings.TrimSuffix(name+" of "+scope, " of ") }

// toggle decodes {"value", "reason", "scope", "for"}, of which the first two must be there. What values there
// are is for the use case to say.
func (d *decoder) toggle(t *sale.Toggle, now time.Time) *Problem {
	problem := d.members(func(name []byte) (known bool, problem *Problem) {
		switch string(name) {
		case "value":
			t.Value, problem = d.text("value", "one of the toggle's values")
		case "reason":
			t.Reason, problem = d.text("reason", "why, for those who look later")
			if problem == nil && !validReason(t.Reason) {
				problem = badInput(InvalidField, "reason", reasonForm)
			}
		case "scope":
			t.Scope, problem = d.text("scope", "a SKU's id, or empty for all")
		case "for":
			var span time.Duration
			span, problem = d.duration("for")
			if problem == nil && (span < minToggleFor || span > maxToggleFor) {
				problem = badInput(InvalidField, "for", "must be a duration from 1s to 720h")
			}
			t.Until = now.Add(span).UTC().Truncate(time.Millisecond)
		default:
			return false, nil
		}
		return true, problem
	})
	switch {
	case problem != nil:
		return problem
	case t.Value == "":
		kind, _ := sale.ToggleKindOf(t.Name)
		return badInput(InvalidField, "value", "must be "+kind.Allowed())
	case t.Reason == "":
		return badInput(InvalidField, "reason", reasonForm)
	}
	return nil
}
