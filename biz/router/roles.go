package router

import (
	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/handler"
)

// togglePath is named because whoever sets a toggle says why in the body.
const togglePath = "/admin/v1/toggles/:name"

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
		{"PUT", togglePath, operator, api.SetToggle},
		{"DELETE", togglePath, operator, api.ClearToggle},

		{"GET", "/admin/v1/audit", viewer, api.ListAudit},

		{"GET", "/admin/v1/dead", viewer, api.ListDead},
		{"GET", "/admin/v1/dead/:seq", viewer, api.ShowDead},
		{"POST", "/admin/v1/dead/:seq/replay", operator, api.ReplayDead},
		{"POST", "/admin/v1/dead/:seq/drop", operator, api.DropDead},
	}
}
