package handler

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"
)

// BreakersJSON is the answer of GET /admin/v1/breakers.
type BreakersJSON struct {
	Breakers []BreakerJSON `json:"breakers"`
}

// ListBreakers serves GET /admin/v1/breakers.
func (a *API) ListBreakers(_ context.Context, c *app.RequestContext) {
	all := BreakersJSON{Breakers: a.Node.Figures().Breakers}
	if all.Breakers == nil {
		all.Breakers = []BreakerJSON{}
	}
	a.json(c, 200, all)
}
