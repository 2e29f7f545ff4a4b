package handler

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"
)

// Readiness tells a balancer whether to send requests here.
type Readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons,omitempty"`  // why not
	Degraded []string `json:"degraded,omitempty"` // ready, but these dependencies are down: purchases are BUSY
}

// Health knows how the node is. It answers from memory.
type Health interface {
	Readiness() Readiness
}

// Livez serves GET /livez: the process answers.
func (a *API) Livez(_ context.Context, c *app.RequestContext) {
	c.Response.Header.SetContentType(jsonType)
	c.Response.SetBodyString(`{"live":true}`)
}

// Readyz serves GET /readyz: 200, or 503 with reasons while the node starts or stops.
func (a *API) Readyz(_ context.Context, c *app.RequestContext) {
	r := a.Health.Readiness()
	status := 200
	if !r.Ready {
		status = 503
	}
	a.json(c, status, r)
}
