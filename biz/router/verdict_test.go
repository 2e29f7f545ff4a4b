package router

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

var someID = sale.DeriveOrderID("demo", "u1", "k1")

// TestVerdictsOnTheWire holds the answer to every outcome of a purchase, byte by byte.
func TestVerdictsOnTheWire(t *testing.T) {
	n := startNode(t, nil)
	id := someID.String()
	opens, closes := testNow.Add(time.Hour), testNow.Add(2*time.Hour)
	for _, tc := range []struct {
		name   string
		result sale.Result
		err    error
		status int
		body   string
		header map[string]string
	}{
		{
			"accepted",
			sale.Result{Code: sale.Accepted, Order: sale.Order{ID: someID, State: sale.OrderQueued}},
			nil, 202,
			`{"order_id":"` + id + `","state":"QUEUED","code":"ACCEPTED","result":1}`,
			map[string]string{
				"Location": "/v1/orders/" + id + "?sku=demo", "Idempotent-Replayed": "",
				"Content-Type": "application/json", "RateLimit-Limit": "5", "RateLimit-Remaining": "4", "RateLimit-Reset": "1",
			},
		},
		{
			"replayed",
			sale.Result{Code: sale.Accepted, Replayed: true, Order: sale.Order{
				ID: someID, State: sale.OrderClosed, Reason: sale.ReasonCompensated,
			}},
			nil, 202,
			`{"order_id":"` + id + `","state":"CLOSED","reason":"COMPENSATED","code":"ACCEPTED","result":1}`,
			map[string]string{"Idempotent-Replayed": "true"},
		},
		{
			"sold out",
			sale.Result{Code: sale.SoldOut},
			nil, 409,
			`{"type":"/errors/SOLD_OUT","title":"Sold out","status":409,"code":"SOLD_OUT","result":0,"request_id":"r1"}`,
			map[string]string{"Content-Type": "application/problem+json", "Retry-After": ""},
		},
		{
			"not enough",
			sale.Result{Code: sale.SoldOut, Reason: sale.ReasonNotEnough},
			nil, 409,
			`{"type":"/errors/SOLD_OUT","title":"Sold out","status":409,"code":"SOLD_OUT","result":0,"reason":"NOT_ENOUGH","request_id":"r1"}`, nil,
		},
		{
			"limit",
			sale.Result{Code: sale.LimitReached, SKU: sale.SKU{Limit: 2}},
			nil, 409,
			`{"type":"/errors/LIMIT_REACHED","title":"Limit per buyer reached","status":409,"code":"LIMIT_REACHED","result":-2,"limit":2,"request_id":"r1"}`, nil,
		},
		{
			"not on sale",
			sale.Result{
				Code: sale.NotOnSale, Reason: sale.ReasonNotStarted, SKU: sale.SKU{OpensAt: opens, ClosesAt: closes},
			},
			nil, 409,
			`{"type":"/errors/NOT_ON_SALE","title":"Not on sale","status":409,"code":"NOT_ON_SALE","result":-1,"reason":"NOT_STARTED",` +
				`"opens_at":"2026-01-02T04:04:05.678Z","closes_at":"2026-01-02T05:04:05.678Z","request_id":"r1"}`, nil,
		},
		{
			"busy",
			sale.Result{Code: sale.Busy, Reason: sale.ReasonQueueFull},
			nil, 503,
			`{"type":"/errors/BUSY","title":"Busy","status":503,"code":"BUSY","result":-4,"reason":"QUEUE_FULL","request_id":"r1"}`,
			map[string]string{"Retry-After": "1-2"},
		},
		{
			"unknown",
			sale.Result{Code: sale.Busy, Unknown: true, Order: sale.Order{ID: someID}},
			nil, 503,
			`{"type":"/errors/BUSY","title":"Busy","status":503,"code":"BUSY","result":-4,"outcome":"unknown","order_id":"` + id + `","request_id":"r1"}`, nil,
		},
		{
			"retry",
			sale.Result{Code: sale.Retry, Reason: sale.ReasonElsewhere},
			nil, 503,
			`{"type":"/errors/RETRY","title":"Ask again","status":503,"code":"RETRY","result":-5,"reason":"OTHER_SHARE","request_id":"r1"}`,
			map[string]string{"Retry-After": "1-2"},
		},
		{
			"rate limited",
			sale.Result{Code: sale.RateLimited},
			nil, 429,
			`{"type":"/errors/RATE_LIMITED","title":"Too many requests","status":429,"code":"RATE_LIMITED","result":-3,"request_id":"r1"}`,
			map[string]string{"Retry-After": "1-2"},
		},
		{
			"no such SKU",
			sale.Result{},
			fmt.Errorf("catalogue: %w", sale.ErrNotFound), 404,
			`{"type":"/errors/SKU_NOT_FOUND","title":"No such SKU","status":404,"code":"SKU_NOT_FOUND","field":"sku","request_id":"r1"}`, nil,
		},
		{
			"key reused",
			sale.Result{},
			sale.ErrKeyReused, 422,
			`{"type":"/errors/KEY_REUSED","title":"Idempotency-Key or token reused","status":422,"detail":"belongs to a request with another quantity",` +
				`"code":"KEY_REUSED","field":"Idempotency-Key","request_id":"r1"}`, nil,
		},
		{
			"input",
			sale.Result{},
			sale.BadInput("quantity", "must be smaller"), 422,
			`{"type":"/errors/INVALID_FIELD","title":"Value not allowed","status":422,"detail":"must be smaller","code":"INVALID_FIELD","field":"quantity","request_id":"r1"}`, nil,
		},
		{
			"stopping",
			sale.Result{},
			sale.ErrShuttingDown, 503,
			`{"type":"/errors/BUSY","title":"Busy","status":503,"code":"BUSY","result":-4,"reason":"DEPENDENCY","request_id":"r1"}`, nil,
		},
		{
			"unforeseen",
			sale.Result{},
			errors.New("disk on fire"), 500,
			`{"type":"/errors/INTERNAL","title":"Internal error","status":500,"code":"INTERNAL","request_id":"r1"}`, nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.shop.set(func() { n.shop.result, n.shop.err, n.shop.bought = tc.result, tc.err, nil })
			got := n.buy(t, `{"quantity":2}`, "Idempotency-Key: k1")
			if got.status != tc.status || got.body != tc.body {
				t.Errorf("got %d %s\nwant %d %s", got.status, got.body, tc.status, tc.body)
			}
			for name, want := range tc.header {
				checkHeader(t, got, name, want)
			}
			checkHeader(t, got, "X-Request-Id", "r1")
			want := service.PurchaseRequest{SKU: "demo", Buyer: "u1", Key: "k1", Quantity: 2}
			n.shop.set(func() {
				if len(n.shop.bought) != 1 || n.shop.bought[0] != want {
					t.Errorf("asked the service for %+v, want %+v", n.shop.bought, want)
				}
			})
		})
	}
	if logged := n.log.lines("level=ERROR"); len(logged) != 1 {
		t.Errorf("only the unforeseen error belongs into the log, once: %q", logged)
	}
}

// checkHeader compares a header; "1-2" is a range of whole numbers.
func checkHeader(t *testing.T, got reply, name, want string) {
	t.Helper()
	have := got.header.Get(name)
	if want == "1-2" {
		if n, err := strconv.Atoi(have); err != nil || n < 1 || n > 2 {
			t.Errorf("%s: %q, want 1 or 2", name, have)
		}
		return
	}
	if have != want {
		t.Errorf("%s: %q, want %q", name, have, want)
	}
}
