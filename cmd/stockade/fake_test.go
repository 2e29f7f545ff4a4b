package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

// fakeAPI answers like both listeners of a node, from memory.
type fakeAPI struct {
	*httptest.Server
	mu       sync.Mutex
	skus     map[string]*handler.ListingJSON
	orders   []sale.Order
	letters  []sale.DeadLetter
	signed   []http.Header // of payment callbacks
	writes   []string      // POSTs with their bodies
	pageSize int           // the most that a page holds, whatever is asked for
	ready    func() (int, string)
	refuse   func(w http.ResponseWriter) bool // answers instead, when it returns true
	look     func(r *http.Request)            // sees every request, when it is set
}

func newFake(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{skus: map[string]*handler.ListingJSON{}, pageSize: 3}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/v1/skus", f.list)
	mux.HandleFunc("POST /admin/v1/skus", f.create)
	mux.HandleFunc("GET /admin/v1/skus/{sku}", f.show)
	mux.HandleFunc("GET /admin/v1/skus/{sku}/{part}", f.part)
	mux.HandleFunc("POST /admin/v1/skus/{sku}/{move}", f.move)
	mux.HandleFunc("GET /v1/orders", f.listOrders)
	mux.HandleFunc("GET /v1/orders/{id}", f.showOrder)
	mux.HandleFunc("POST /v1/orders/{id}/cancel", f.cancelOrder)
	mux.HandleFunc("GET /admin/v1/orders/{id}", f.showOrder)
	mux.HandleFunc("POST /admin/v1/orders/{id}/cancel", f.cancelOrder)
	mux.HandleFunc("POST /v1/payments", f.pay)
	mux.HandleFunc("GET /admin/v1/dead", f.listDead)
	mux.HandleFunc("GET /admin/v1/dead/{seq}", f.showDead)
	mux.HandleFunc("POST /admin/v1/dead/{seq}/{move}", f.handleDead)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, body := f.ready()
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.look != nil {
			f.look(r)
		}
		if f.refuse == nil || !f.refuse(w) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAPI) add(id string, state sale.SKUState, total, promised int64) {
	f.skus[id] = &handler.ListingJSON{
		SKU: id, State: string(state), Limit: 2, Slots: 4, ReservePct: 5, PaymentWindow: "15m0s",
		OpensAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Ledger:  handler.LedgerJSON{Total: total, Promised: promised, Available: total - promised, Epoch: 1},
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, field, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	reply(w, status, map[string]any{
		"title": "Title", "status": status, "code": code, "field": field, "detail": detail, "request_id": "r-1",
	})
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request) {
	ids := []string{}
	for id := range f.skus {
		if id > r.URL.Query().Get("after") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	page := handler.ListingPage{SKUs: []handler.ListingJSON{}}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	for _, id := range ids[:min(len(ids), limit, f.pageSize)] {
		page.SKUs = append(page.SKUs, *f.skus[id])
		page.Next = id
	}
	if len(page.SKUs) < min(limit, f.pageSize) {
		page.Next = ""
	}
	reply(w, 200, page)
}

func (f *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	var body newSKU
	text := f.note(r)
	if json.Unmarshal([]byte(text), &body) != nil || body.Total < 1 {
		refuse(w, 422, "INVALID_FIELD", "total", "must be a whole number from 1 to 1000000000")
		return
	}
	if f.skus[body.SKU] != nil {
		refuse(w, 409, "SKU_EXISTS", "sku", "")
		return
	}
	f.add(body.SKU, sale.Draft, body.Total, 0)
	reply(w, 201, f.skus[body.SKU])
}

// note keeps a write for the test to look at.
func (f *fakeAPI) note(r *http.Request) string {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	f.writes = append(f.writes, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+b.String()))
	return b.String()
}

func (f *fakeAPI) sku(w http.ResponseWriter, r *http.Request) *handler.ListingJSON {
	s := f.skus[r.PathValue("sku")]
	if s == nil {
		refuse(w, 404, "SKU_NOT_FOUND", "sku", "")
	}
	return s
}

func (f *fakeAPI) show(w http.ResponseWriter, r *http.Request) {
	if s := f.sku(w, r); s != nil {
		reply(w, 200, s)
	}
}

func (f *fakeAPI) part(w http.ResponseWriter, r *http.Request) {
	s := f.sku(w, r)
	switch {
	case s == nil:
	case r.PathValue("part") == "shares":
		reply(w, 200, handler.SharesJSON{Shares: []handler.ShareJSON{
			{Share: "0", Epoch: 1, Left: 7, Initial: 10}, {Share: "1", Gone: true}, {Share: "reserve", Epoch: 1, Sealed: true},
		}})
	default:
		reply(w, 200, sale.Books{Total: s.Ledger.Total, Promised: s.Ledger.Promised, LiveUnits: s.Ledger.Promised})
	}
}

func (f *fakeAPI) move(w http.ResponseWriter, r *http.Request) {
	text := f.note(r)
	s := f.sku(w, r)
	if s == nil {
		return
	}
	to := map[string]sale.SKUState{"load": sale.Loaded, "open": sale.Open, "pause": sale.Paused, "close": sale.Closed}
	state, isMove := to[r.PathValue("move")]
	switch {
	case !isMove:
		var body struct{ Add int64 }
		_ = json.Unmarshal([]byte(text), &body)
		s.Ledger.Total += body.Add
	case !slices.Contains(state.MayBecome(), sale.SKUState(s.State)):
		refuse(w, 409, "WRONG_STATE", "", "sku "+s.SKU+" is "+s.State)
		return
	default:
		s.State = string(state)
	}
	reply(w, 200, s)
}

func (f *fakeAPI) listOrders(w http.ResponseWriter, r *http.Request) {
	page := handler.OrderPage{Orders: []sale.Order{}}
	for _, o := range f.orders {
		if o.Buyer == r.Header.Get("X-Buyer-Id") && o.ID.String() > r.URL.Query().Get("after") && len(page.Orders) < f.pageSize {
			page.Orders = append(page.Orders, o)
			page.Next = o.ID.String()
		}
	}
	if len(page.Orders) < f.pageSize {
		page.Next = ""
	}
	reply(w, 200, page)
}

func (f *fakeAPI) showOrder(w http.ResponseWriter, r *http.Request) {
	admin := strings.HasPrefix(r.URL.Path, "/admin/")
	for _, o := range f.orders {
		if o.ID.String() == r.PathValue("id") && (admin || o.Buyer == r.Header.Get("X-Buyer-Id")) {
			reply(w, 200, o)
			return
		}
	}
	refuse(w, 404, "ORDER_NOT_FOUND", "id", "")
}

// testToken looks like an admin token.
var testToken = auth.TokenPrefix + strings.Repeat("A", 43)

// ran is what a command line did.
type ran struct {
	code           int
	stdout, stderr string
}

// try runs a command line against the fake.
func (f *fakeAPI) try(t *testing.T, args ...string) ran {
	t.Helper()
	return runWith(t, []string{adminEnv + "=" + f.URL, publicEnv + "=" + f.URL, adminTokenEnv + "=" + testToken}, args...)
}

func runWith(t *testing.T, env []string, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(""), &out, &err, env)
	return ran{code, out.String(), err.String()}
}
