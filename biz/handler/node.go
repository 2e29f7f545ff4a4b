package handler

import (
	"context"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/service"
)

// NodeFigures tells how this node is doing. It answers from memory, also while every server is down.
type NodeFigures interface {
	Figures() NodeJSON
}

// NodeJSON is the answer of GET /admin/v1/node: figures of this node alone, counted since its start.
type NodeJSON struct {
	Node                string           `json:"node"`
	Results             map[string]int64 `json:"results"` // answers to purchases by code, those that never came too
	Breakers            []BreakerJSON    `json:"breakers"`
	InFlight            int64            `json:"in_flight"`             // public requests that are being answered
	AdaptiveShedPercent int              `json:"adaptive_shed_percent"` // share of purchases refused because of the load
	// Backlog is how many accepted orders of all nodes the broker does not have, counted no further than
	// limiter.backlogMaxEvents; null: not known.
	Backlog     *int64             `json:"backlog"`
	TogglesFile service.ToggleNews `json:"toggles_file"`
}

// BreakerJSON is a breaker as it stands on this node.
type BreakerJSON struct {
	Name    string    `json:"name"`   // without the toggle's prefix, such as lane.127.0.0.1:6379
	State   string    `json:"state"`  // closed, open, half-open
	Forced  string    `json:"forced"` // what its toggle says: auto, open, closed
	Changes int64     `json:"changes"`
	Since   time.Time `json:"since,omitzero"` // of the last change
	Why     string    `json:"why,omitempty"`  // of the last change; of backlog also why nobody can count it
	Refused int64     `json:"refused"`        // calls of a lane, the outbox or the relay; purchases of adaptive
}

// ShowNode serves GET /admin/v1/node.
func (a *API) ShowNode(_ context.Context, c *app.RequestContext) {
	figures := a.Node.Figures()
	if figures.Breakers == nil {
		figures.Breakers = []BreakerJSON{}
	}
	a.json(c, 200, figures)
}
