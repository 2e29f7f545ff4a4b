package handler

import (
	"context"
	"errors"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Stock tells what the public may know of a SKU; sale.ErrNotFound when there is none.
type Stock interface {
	Stock(ctx context.Context, sku string) (service.StockView, error)
}

// StockJSON is the answer of GET /v1/skus/{sku}.
type StockJSON struct {
	SKU        string     `json:"sku"`
	State      string     `json:"state"`
	OpensAt    time.Time  `json:"opens_at"`
	ClosesAt   *time.Time `json:"closes_at"`        // null: open end
	Limit      int64      `json:"limit"`            // live units per buyer
	Left       *int64     `json:"left"`             // about how many units are left; null: this node does not know
	Frozen     bool       `json:"frozen,omitempty"` // an operator has this answer given as last known, of whatever age
	ServerTime time.Time  `json:"server_time"`
}

// GetSKU serves GET /v1/skus/{sku}.
func (a *API) GetSKU(ctx context.Context, c *app.RequestContext) {
	sku, problem := SKU(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	view, err := a.Stock.Stock(ctx, sku)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: SKUNotFound, Field: "sku"}).Write(c)
		return
	case err != nil:
		a.fail(c, err)
		return
	}
	answer := StockJSON{
		SKU: view.Listing.ID, State: string(view.Listing.State), OpensAt: view.Listing.OpensAt.UTC(),
		ClosesAt: unlessZero(view.Listing.ClosesAt), Limit: view.Listing.Limit,
		Frozen:     view.Frozen,
		ServerTime: a.Now().UTC().Truncate(time.Millisecond),
	}
	if view.Fresh {
		answer.Left = &view.Left
	}
	c.Response.Header.Set("Cache-Control", "no-store")
	a.json(c, 200, answer)
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
