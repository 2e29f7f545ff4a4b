package router

import (
	"context"
	"errors"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"stockade/biz/auth"
	"stockade/biz/handler"
)

// Operators knows whose token a request of the admin API has. auth.ErrTokenUnknown, auth.ErrTokenExpired.
type Operators interface {
	Operator(token string) (auth.Operator, error)
}

// anybody marks the routes of the admin listener that need no token: probes, whose callers have none.
const anybody auth.Role = ""

// adminRoute is one line of the table below. least is the role that may use the route.
type adminRoute struct {
	method, path string
	least        auth.Role
	serve        app.HandlerFunc
}

// adminTable is every route of the admin listener with the least role that may use it: who may only look, who may steer
// a sale, and who decides what is sold.
func adminTable(api *handler.API) []adminRoute {
	const (
		viewer   = auth.RoleViewer
		operator = auth.RoleOperator
		admin    = auth.RoleAdmin
		skus     = "/admin/v1/skus"
	)
	return []adminRoute{
		{"GET", "/livez", anybody, api.Livez},
		{"GET", "/readyz", anybody, api.Readyz},

		{"POST", skus, admin, api.CreateSKU},
		{"GET", skus, viewer, api.ListSKUs},
		{"GET", skus + "/:sku", viewer, api.ShowSKU},
		{"GET", skus + "/:sku/shares", viewer, api.ShowShares},
		{"GET", skus + "/:sku/books", viewer, api.ShowBooks},
		{"POST", skus + "/:sku/load", admin, api.LoadSKU},
		{"POST", skus + "/:sku/open", operator, api.OpenSKU},
		{"POST", skus + "/:sku/pause", operator, api.PauseSKU},
		{"POST", skus + "/:sku/close", operator, api.CloseSKU},
		{"POST", skus + "/:sku/adjust", admin, api.AdjustSKU},
		{"POST", skus + "/:sku/reshare", operator, api.ReshareSKU},
		{"POST", skus + "/:sku/slots", admin, api.SetSlots},
		{"POST", skus + "/:sku/path", admin, api.SetPath},
		{"GET", skus + "/:sku/audit", viewer, api.AuditSKU},
		{"POST", skus + "/:sku/reconcile", operator, api.ReconcileSKU},
		{"POST", skus + "/:sku/closeout", admin, api.CloseOutSKU},
		{"GET", skus + "/:sku/closeout", viewer, api.ShowCloseout},

		{"GET", "/admin/v1/orders/:id", viewer, api.ShowOrder},
		{"POST", "/admin/v1/orders/:id/cancel", operator, api.CancelAnyOrder},

		{"GET", "/admin/v1/doctor", viewer, api.Examine},
		{"GET", "/admin/v1/node", viewer, api.ShowNode},
		{"GET", "/admin/v1/breakers", viewer, api.ListBreakers},
		{"GET", "/admin/v1/toggles", viewer, api.ListToggles},
		{"PUT", "/admin/v1/toggles/:name", operator, api.SetToggle},

		{"GET", "/admin/v1/dead", viewer, api.ListDead},
		{"GET", "/admin/v1/dead/:seq", viewer, api.ShowDead},
		{"POST", "/admin/v1/dead/:seq/replay", operator, api.ReplayDead},
		{"POST", "/admin/v1/dead/:seq/drop", operator, api.DropDead},
	}
}

func adminRoutes(h *server.Hertz, api *handler.API, who Operators) {
	for _, r := range adminTable(api) {
		if r.least == anybody {
			h.Handle(r.method, r.path, r.serve)
			continue
		}
		h.Handle(r.method, r.path, operatorOnly(who, r.least), r.serve)
	}
}

// operatorOnly lets those through whose token has at least this role. Nobody gets in when there are no tokens.
func operatorOnly(who Operators, least auth.Role) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		operator, problem := identifyOperator(who, c)
		if problem == nil && !operator.Role.May(least) {
			problem = &handler.Problem{Code: handler.Forbidden, Detail: "needs the role " + string(least) + "; yours is " + string(operator.Role)}
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

func identifyOperator(who Operators, c *app.RequestContext) (auth.Operator, *handler.Problem) {
	const header = "Authorization"
	refused := func(detail string) *handler.Problem {
		return &handler.Problem{Code: handler.Unauthenticated, Field: header, Detail: detail}
	}
	given := c.Request.Header.PeekAll(header)
	if len(given) != 1 {
		return auth.Operator{}, refused("must be given once: Bearer and an admin token")
	}
	scheme, token, _ := strings.Cut(string(given[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") || who == nil {
		return auth.Operator{}, refused("must be Bearer and an admin token")
	}
	operator, err := who.Operator(strings.TrimSpace(token))
	switch {
	case errors.Is(err, auth.ErrTokenExpired):
		return operator, refused("the admin token has expired")
	case err != nil:
		return operator, refused("the admin token is not known here")
	}
	return operator, nil
}
