package router

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

// Operators knows whose token a request of the admin API has. auth.ErrTokenUnknown, auth.ErrTokenExpired.
type Operators interface {
	Operator(token string) (auth.Operator, error)
}

// Audit keeps a line for each write of an operator.
type Audit interface {
	Record(ctx context.Context, e sale.AuditEntry)
}

// guard lets operators in, as far as their roles allow, and has it written down what they change.
type guard struct {
	who   Operators // nil: nobody is let in
	audit Audit
}

func adminRoutes(h *server.Hertz, api *handler.API, g *guard) {
	for _, r := range adminTable(api) {
		switch {
		case r.least == anybody:
			h.Handle(r.method, r.path, r.serve)
		case r.writes():
			h.Handle(r.method, r.path, g.write(r), r.serve)
		default:
			h.Handle(r.method, r.path, g.read(r), r.serve)
		}
	}
}

func (r adminRoute) writes() bool { return r.method != http.MethodGet }

// nouns are the resources of the paths, as the audit log names them.
var nouns = strings.NewReplacer("skus", "sku", "orders", "order", "toggles", "toggle")

// action names a write: resource and verb, such as sku.open. A path without a verb creates, or sets
// or clears what it names.
func (r adminRoute) action() string {
	var words []string
	for _, part := range strings.Split(strings.TrimPrefix(r.path, "/admin/v1/"), "/") {
		if !strings.HasPrefix(part, ":") {
			words = append(words, part)
		}
	}
	if len(words) == 1 {
		verb := "create"
		switch r.method {
		case http.MethodPut:
			verb = "set"
		case http.MethodDelete:
			verb = "clear"
		}
		words = append(words, verb)
	}
	return nouns.Replace(strings.Join(words, "."))
}

// parameter is the name of the path's parameter, or "".
func (r adminRoute) parameter() string {
	_, rest, _ := strings.Cut(r.path, ":")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// explained tells that the body says why; else the header X-Reason has to.
func (r adminRoute) explained() bool { return r.path == togglePath && r.method == http.MethodPut }

func (g *guard) read(r adminRoute) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		operator, problem := g.identify(c)
		if problem == nil {
			problem = needs(r.least, operator)
		}
		if problem != nil {
			problem.Write(c)
			c.Abort()
			return
		}
		handler.SetOperator(c, operator)
		c.Next(ctx)
	}
}

// write is read for what changes something: whatever comes of it, also a refusal, is one line of the audit log, once it is
// known whose it is.
func (g *guard) write(r adminRoute) app.HandlerFunc {
	action, parameter, explained := r.action(), r.parameter(), r.explained()
	return func(ctx context.Context, c *app.RequestContext) {
		operator, problem := g.identify(c)
		if problem != nil {
			problem.Write(c)
			c.Abort()
			return
		}
		handler.SetOperator(c, operator)
		note := &handler.Audited{Target: strings.Clone(c.Param(parameter))}
		handler.SetAudited(c, note)
		status := http.StatusInternalServerError // unless the handlers return
		defer func() {
			g.audit.Record(ctx, sale.AuditEntry{
				Actor: operator.Name, Role: string(operator.Role), Action: action, Target: note.Target, Detail: note.Detail,
				Reason: note.Reason, Status: status, RequestID: string(c.Response.Header.Peek(handler.RequestIDHeader)),
			})
		}()
		reason, missing := handler.Reason(c)
		note.Reason = reason
		if problem = needs(r.least, operator); problem == nil && !explained {
			problem = missing
		}
		if problem != nil {
			problem.Write(c)
			c.Abort()
		} else {
			c.Next(ctx)
		}
		status = c.Response.StatusCode()
	}
}

func needs(least auth.Role, operator auth.Operator) *handler.Problem {
	if operator.Role.May(least) {
		return nil
	}
	return &handler.Problem{
		Code: handler.Forbidden, Detail: "needs the role " + string(least) + "; yours is " + string(operator.Role),
	}
}

func (g *guard) identify(c *app.RequestContext) (auth.Operator, *handler.Problem) {
	const header = "Authorization"
	refused := func(detail string) *handler.Problem {
		return &handler.Problem{Code: handler.Unauthenticated, Field: header, Detail: detail}
	}
	given := c.Request.Header.PeekAll(header)
	if len(given) != 1 {
		return auth.Operator{}, refused("must be given once: Bearer and an admin token")
	}
	scheme, token, _ := strings.Cut(string(given[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") || g.who == nil {
		return auth.Operator{}, refused("must be Bearer and an admin token")
	}
	operator, err := g.who.Operator(strings.TrimSpace(token))
	switch {
	case errors.Is(err, auth.ErrTokenExpired):
		return operator, refused("the admin token has expired")
	case err != nil:
		return operator, refused("the admin token is not known here")
	}
	return operator, nil
}
