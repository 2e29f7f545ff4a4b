package handler

import (
	"context"
	"errors"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
)

// Orders reads a buyer's orders. Another buyer's order is sale.ErrNotFound.
type Orders interface {
	Order(ctx context.Context, buyer string, id sale.OrderID) (sale.Order, error)
	// OrderOf is Order for an order of this SKU: it also finds one whose acceptance is not in MySQL yet.
	OrderOf(ctx context.Context, sku, buyer string, id sale.OrderID) (sale.Order, error)
	// OrdersOf lists at most limit orders by id, after the given one; zero starts at the beginning.
	OrdersOf(ctx context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error)
}

// OrderPage is the answer of GET /v1/orders.
type OrderPage struct {
	Orders []sale.Order `json:"orders"`
	Next   string       `json:"next,omitempty"` // cursor of the next page; missing on the last one
}

// GetOrder serves GET /v1/orders/{id}.
func (a *API) GetOrder(ctx context.Context, c *app.RequestContext) {
	order, _, problem := a.order(ctx, c)
	switch {
	case problem != nil:
		problem.Write(c)
	case order.ID != sale.OrderID{}:
		c.Response.Header.Set("Cache-Control", "no-store")
		a.json(c, 200, order)
	}
}

// order finds the order that the request names. When it returns neither an order nor a problem, the answer is written.
func (a *API) order(ctx context.Context, c *app.RequestContext) (sale.Order, string, *Problem) {
	id, problem := orderID(c)
	if problem != nil {
		return sale.Order{}, "", problem
	}
	buyer, problem := Buyer(c)
	if problem != nil {
		return sale.Order{}, "", problem
	}
	order, err := sale.Order{}, error(nil)
	if sku, given := c.GetQuery("sku"); given {
		if !sale.ValidSKUID(sku) {
			return sale.Order{}, "", badInput(BadRequest, "sku", "must match "+sale.SKUIDPattern)
		}
		order, err = a.Orders.OrderOf(ctx, strings.Clone(sku), buyer, id)
	} else {
		order, err = a.Orders.Order(ctx, buyer, id)
	}
	switch {
	case errors.Is(err, sale.ErrNotFound):
		return sale.Order{}, "", &Problem{Code: OrderNotFound, Field: "id"}
	case err != nil:
		a.fail(c, err)
		return sale.Order{}, "", nil
	}
	return order, buyer, nil
}

// ListOrders serves GET /v1/orders.
func (a *API) ListOrders(ctx context.Context, c *app.RequestContext) {
	buyer, problem := Buyer(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	limit, problem := pageLimit(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	var after sale.OrderID
	if raw, given := c.GetQuery("after"); given {
		var err error
		if after, err = sale.ParseOrderID(raw); err != nil {
			badInput(BadRequest, "after", "must be the next of an earlier page").Write(c)
			return
		}
	}
	orders, err := a.Orders.OrdersOf(ctx, buyer, after, limit)
	if err != nil {
		a.fail(c, err)
		return
	}
	page := OrderPage{Orders: orders}
	if page.Orders == nil {
		page.Orders = []sale.Order{}
	}
	if len(orders) == limit {
		page.Next = orders[limit-1].ID.String()
	}
	c.Response.Header.Set("Cache-Control", "no-store")
	a.json(c, 200, page)
}
