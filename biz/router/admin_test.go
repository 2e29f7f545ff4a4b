package router

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

const demoJSON = `{"sku":"demo","state":"OPEN","opens_at":"2026-01-02T02:04:05.678Z","closes_at":null,"limit":2,` +
	`"payment_window":"15m0s","slots":32,"reserve_pct":5,"purchase_token":"optional","ledger":{"epoch":1,"live_epoch":1,"laid_epoch":1,` +
	`"mode":"redis","state":"STEADY","total":100,"promised":2,"sold":0,"available":98}}`

func TestPublicStock(t *testing.T) {
	n := startNode(t, nil)
	const before = `{"sku":"demo","state":"OPEN","opens_at":"2026-01-02T02:04:05.678Z","closes_at":null,"limit":2,"left":`
	const after = `,"server_time":"2026-01-02T03:04:05.678Z"}`
	for _, tc := range []struct {
		fresh bool
		left  string
	}{{false, "null"}, {true, "0"}} {
		n.shop.set(func() { n.shop.fresh = tc.fresh })
		if got := send(t, "GET", n.publicURL()+"/v1/skus/demo", ""); got.status != 200 || got.body != before+tc.left+after {
			t.Errorf("got %d %s", got.status, got.body)
		}
	}
	if got := send(t, "GET", n.publicURL()+"/v1/skus/none", ""); readProblem(t, got).Code != "SKU_NOT_FOUND" || got.status != 404 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := send(t, "GET", n.publicURL()+"/admin/v1/skus/demo", ""); got.status != 404 {
		t.Errorf("the public listener serves operators: %d", got.status)
	}
	if got := send(t, "GET", n.adminURL()+"/v1/skus/demo", ""); got.status != 404 {
		t.Errorf("the admin listener serves buyers: %d", got.status)
	}
}

func TestListOrdersPages(t *testing.T) {
	n := startNode(t, nil)
	for i := byte(1); i <= 5; i++ {
		o := orderOf(sale.OrderCreated)
		o.ID = sale.OrderID{15: i}
		n.put(o)
	}
	var seen []byte
	path := "/v1/orders?limit=2"
	for pages := 0; path != ""; pages++ {
		if pages > 3 {
			t.Fatal("the pages do not end")
		}
		got := send(t, "GET", n.publicURL()+path, "", "X-Buyer-Id: u1")
		var page handler.OrderPage
		if err := json.Unmarshal([]byte(got.body), &page); err != nil {
			t.Fatalf("%v in %d %s", err, got.status, got.body)
		}
		for _, o := range page.Orders {
			seen = append(seen, o.ID[15])
		}
		path = ""
		if page.Next != "" {
			path = "/v1/orders?limit=2&after=" + page.Next
		}
	}
	if !slices.Equal(seen, []byte{1, 2, 3, 4, 5}) {
		t.Errorf("the pages had %v", seen)
	}
	if got := send(t, "GET", n.publicURL()+"/v1/orders", "", "X-Buyer-Id: u9"); got.body != `{"orders":[]}` {
		t.Errorf("no orders: %s", got.body)
	}
}

func TestAdminCalls(t *testing.T) {
	n := startNode(t, nil)
	base := n.adminURL() + "/admin/v1/skus"
	for _, tc := range []struct{ method, path, body, move, want string }{
		{"GET", "/demo", "", "get", demoJSON},
		{"GET", "", "", "list", `{"skus":[` + demoJSON + `]}`},
		{"GET", "?limit=1", "", "list", `{"skus":[` + demoJSON + `],"next":"demo"}`},
		{"GET", "?limit=1&after=demo", "", "list", `{"skus":[]}`},
		{"POST", "/demo/load", "", "load", demoJSON},
		{"POST", "/demo/open", "{}", "open", demoJSON},
		{"POST", "/demo/pause", "", "pause", demoJSON},
		{"POST", "/demo/close", "", "close", demoJSON},
		{"POST", "/demo/adjust", `{"add":-7}`, "adjust", demoJSON},
		{"POST", "/demo/reshare", "", "reshare false", demoJSON},
		{"POST", "/demo/reshare", `{"full":true}`, "reshare true", demoJSON},
		{"POST", "/demo/slots", `{"slots":8}`, "slots 8", demoJSON},
		{"POST", "/demo/slots", `{"slots":"auto"}`, "slots 0", demoJSON},
		{"POST", "/demo/path", `{"path":"mysql"}`, "path mysql", demoJSON},
		{"GET", "/demo/shares", "", "shares", `{"shares":[` +
			`{"share":"0","gone":false,"sealed":false,"epoch":1,"left":7,"pending":0,"initial":9,"changes":2},` +
			`{"share":"reserve","gone":true,"sealed":false,"epoch":0,"left":0,"pending":0,"initial":0,"changes":0}]}`},
		{"GET", "/demo/books", "", "books", `{"total":100,"promised":2,"sold":0,"live_units":2,` +
			`"live_orders":1,"paid_units":0,"orders":1,"unpaid":1,"paid":0,"closed":0,"missing":0,"uncredited":0,` +
			`"strangers":0,"over_limit":0}`},
	} {
		n.shop.set(func() { n.shop.moves = nil })
		got := send(t, tc.method, base+tc.path, tc.body)
		if got.status != 200 || got.body != tc.want {
			t.Errorf("%s %s: %d %s\nwant %s", tc.method, tc.path, got.status, got.body, tc.want)
		}
		n.shop.set(func() {
			if !slices.Equal(n.shop.moves, []string{tc.move}) {
				t.Errorf("%s %s called %v", tc.method, tc.path, n.shop.moves)
			}
		})
	}
	n.shop.set(func() {
		if n.shop.add != -7 {
			t.Errorf("adjusted by %d", n.shop.add)
		}
	})
}

func TestCreateSKU(t *testing.T) {
	n := startNode(t, nil)
	opens, closes := testNow.Add(time.Hour).Truncate(time.Second), testNow.Add(2*time.Hour).Truncate(time.Second)
	for _, tc := range []struct {
		body  string
		want  sale.SKU
		total int64
	}{
		{
			`{"sku":"small","total":120}`,
			sale.SKU{ID: "small", State: sale.Draft, OpensAt: testNow, Limit: 2, PaymentWindow: 15 * time.Minute, Slots: 2, ReservePct: 5},
			120,
		},
		{
			`{"sku":"A.b_c-1","total":1000000000,"limit":1000,"slots":1,"reserve_pct":0,"payment_window":"90s","purchase_token":"optional",` +
				`"opens_at":"2026-01-02T04:04:05Z","closes_at":"2026-01-02T06:04:05+01:00"}`,
			sale.SKU{ID: "A.b_c-1", State: sale.Draft, OpensAt: opens, ClosesAt: closes, Limit: 1000, PaymentWindow: 90 * time.Second, Slots: 1},
			1_000_000_000,
		},
		{
			`{"sku":"big","total":10000,"slots":"auto","purchase_token":"required"}`,
			sale.SKU{
				ID: "big", State: sale.Draft, OpensAt: testNow, Limit: 2, PaymentWindow: 15 * time.Minute, Slots: 32, ReservePct: 5,
				TokenRequired: true,
			},
			10_000,
		},
	} {
		got := send(t, "POST", n.adminURL()+"/admin/v1/skus", tc.body)
		// The fake knows only the SKU demo, but keeps what it was asked to create.
		n.shop.set(func() {
			if n.shop.sku != tc.want || n.shop.total != tc.total {
				t.Errorf("%s created %+v of %d, want %+v of %d (%d %s)", tc.body, n.shop.sku, n.shop.total, tc.want, tc.total, got.status, got.body)
			}
		})
	}
	got := send(t, "POST", n.adminURL()+"/admin/v1/skus", `{"sku":"demo","total":1}`)
	if got.status != 201 || !strings.Contains(got.body, `"state":"DRAFT"`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	checkHeader(t, got, "Location", "/admin/v1/skus/demo")
}

func TestAdminBadInput(t *testing.T) {
	n := startNode(t, nil)
	create := func(member string) string { return `{"sku":"x","total":1,` + member + `}` }
	for _, tc := range []struct {
		path, body  string
		status      int
		code, field string
	}{
		{"", `{"total":1}`, 422, "INVALID_FIELD", "sku"},
		{"", `{"sku":"x"}`, 422, "INVALID_FIELD", "total"},
		{"", `{"sku":"{x}","total":1}`, 422, "INVALID_FIELD", "sku"},
		{"", `{"sku":7,"total":1}`, 422, "INVALID_FIELD", "sku"},
		{"", `{"sku":"x","total":0}`, 422, "INVALID_FIELD", "total"},
		{"", `{"sku":"x","total":1000000001}`, 422, "INVALID_FIELD", "total"},
		{"", create(`"limit":0`), 422, "INVALID_FIELD", "limit"},
		{"", create(`"slots":33`), 422, "INVALID_FIELD", "slots"},
		{"", create(`"slots":"many"`), 422, "INVALID_FIELD", "slots"},
		{"", create(`"slots":null`), 422, "INVALID_FIELD", "slots"},
		{"", create(`"reserve_pct":51`), 422, "INVALID_FIELD", "reserve_pct"},
		{"", create(`"purchase_token":"forbidden"`), 422, "INVALID_FIELD", "purchase_token"},
		{"", create(`"purchase_token":true`), 422, "INVALID_FIELD", "purchase_token"},
		{"", create(`"payment_window":900`), 422, "INVALID_FIELD", "payment_window"},
		{"", create(`"payment_window":"1ms"`), 422, "INVALID_FIELD", "payment_window"},
		{"", create(`"opens_at":"tomorrow"`), 422, "INVALID_FIELD", "opens_at"},
		{"", create(`"closes_at":"2020-01-01T00:00:00Z"`), 422, "INVALID_FIELD", "closes_at"},
		{"", create(`"price":1`), 400, "MALFORMED_BODY", "price"},
		{"", create(`"total":1`), 400, "MALFORMED_BODY", "total"},
		{"", "", 400, "MALFORMED_BODY", "body"},
		{"/demo/adjust", `{}`, 422, "INVALID_FIELD", "add"},
		{"/demo/adjust", `{"add":0}`, 422, "INVALID_FIELD", "add"},
		{"/demo/adjust", `{"add":"+5"}`, 422, "INVALID_FIELD", "add"},
		{"/demo/adjust", `{"add":1.5}`, 422, "INVALID_FIELD", "add"},
		{"/demo/adjust", "", 400, "MALFORMED_BODY", "body"},
		{"/demo/load", `{"force":true}`, 400, "MALFORMED_BODY", "force"},
		{"/demo/reshare", `{"full":1}`, 422, "INVALID_FIELD", "full"},
		{"/demo/reshare", `{"fix":true}`, 400, "MALFORMED_BODY", "fix"},
		{"/demo/slots", `{"slots":33}`, 422, "INVALID_FIELD", "slots"},
		{"/demo/slots", `{}`, 422, "INVALID_FIELD", "slots"},
		{"/demo/slots", "", 422, "INVALID_FIELD", "slots"},
		{"/demo/path", `{"path":"memory"}`, 422, "INVALID_FIELD", "path"},
		{"/demo/path", `{"path":7}`, 422, "INVALID_FIELD", "path"},
		{"/demo/reconcile", `{"fix":"yes"}`, 422, "INVALID_FIELD", "fix"},
		{"/demo/closeout", `{"force":true}`, 400, "MALFORMED_BODY", "force"},
		{"/demo/open", `[]`, 400, "MALFORMED_BODY", "body"},
		{"/%7Bdemo%7D/load", "", 400, "BAD_REQUEST", "sku"},
	} {
		got := send(t, "POST", n.adminURL()+"/admin/v1/skus"+tc.path, tc.body)
		if p := readProblem(t, got); got.status != tc.status || p.Code != tc.code || p.Field != tc.field {
			t.Errorf("%s %s: %d %s for %q, want %d %s for %q", tc.path, tc.body, got.status, p.Code, p.Field, tc.status, tc.code, tc.field)
		}
	}
	for _, query := range []string{"limit=0", "limit=201", "after=%7B"} {
		if got := send(t, "GET", n.adminURL()+"/admin/v1/skus?"+query, ""); got.status != 400 {
			t.Errorf("%s: %d", query, got.status)
		}
	}
	checkUntouched(t, n)
}

func TestAdminErrors(t *testing.T) {
	n := startNode(t, nil)
	for _, tc := range []struct {
		err    error
		status int
		code   string
	}{
		{&sale.StateError{SKU: "demo", State: sale.Draft, Want: "open"}, 409, "WRONG_STATE"},
		{fmt.Errorf("store: %w", sale.ErrExists), 409, "SKU_EXISTS"},
		{sale.ErrConflict, 409, "CONFLICT"},
		{&service.UnfinishedError{SKU: "demo"}, 409, "NOT_FINISHED"},
		{&service.DisagreementError{SKU: "demo"}, 409, "BOOKS_DISAGREE"},
		{sale.ErrNotFound, 404, "SKU_NOT_FOUND"},
		{sale.BadInput("total", "must not fall below what is promised"), 422, "INVALID_FIELD"},
	} {
		n.shop.set(func() { n.shop.skuErr = tc.err })
		got := send(t, "POST", n.adminURL()+"/admin/v1/skus/demo/open", "")
		if p := readProblem(t, got); got.status != tc.status || p.Code != tc.code {
			t.Errorf("%v: %d %s", tc.err, got.status, got.body)
		}
		if wait := got.header.Get("Retry-After"); (tc.code == "CONFLICT") != (wait != "") {
			t.Errorf("%s has Retry-After %q", tc.code, wait)
		}
	}
}
