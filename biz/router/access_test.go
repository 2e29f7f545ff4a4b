package router

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

// Who may use a route beside operators of a role.
const (
	anyone   = "anyone"
	buyer    = "buyer"
	provider = "payment provider"
)

// access is the whole of what either listener serves: who may use it, and what the right one is answered.
var access = map[string]struct {
	who    string
	status int
}{
	"public GET /livez":                        {anyone, 200},
	"public GET /readyz":                       {anyone, 200},
	"public GET /openapi.yaml":                 {anyone, 200},
	"public GET /v1/skus/:sku":                 {anyone, 200},
	"public POST /v1/skus/:sku/orders":         {buyer, 202},
	"public POST /v1/skus/:sku/token":          {buyer, 200},
	"public GET /v1/orders":                    {buyer, 200},
	"public GET /v1/orders/:id":                {buyer, 200},
	"public GET /v1/orders/:id/events":         {buyer, 200},
	"public POST /v1/orders/:id/cancel":        {buyer, 200},
	"public POST /v1/payments":                 {provider, 200},
	"admin GET /livez":                         {anyone, 200},
	"admin GET /readyz":                        {anyone, 200},
	"admin GET /admin/v1/skus":                 {"viewer", 200},
	"admin GET /admin/v1/skus/:sku":            {"viewer", 200},
	"admin GET /admin/v1/orders/:id":           {"viewer", 200},
	"admin GET /admin/v1/doctor":               {"viewer", 200},
	"admin GET /admin/v1/node":                 {"viewer", 200},
	"admin GET /admin/v1/breakers":             {"viewer", 200},
	"admin GET /admin/v1/toggles":              {"viewer", 200},
	"admin GET /admin/v1/audit":                {"viewer", 200},
	"admin GET /admin/v1/dead":                 {"viewer", 200},
	"admin GET /admin/v1/dead/:seq":            {"viewer", 200},
	"admin PUT /admin/v1/toggles/:name":        {"operator", 200},
	"admin DELETE /admin/v1/toggles/:name":     {"operator", 200},
	"admin POST /admin/v1/skus":                {"admin", 201},
	"admin GET /admin/v1/skus/:sku/books":      {"viewer", 200},
	"admin GET /admin/v1/skus/:sku/audit":      {"viewer", 200},
	"admin GET /admin/v1/skus/:sku/shares":     {"viewer", 200},
	"admin GET /admin/v1/skus/:sku/closeout":   {"viewer", 200},
	"admin POST /admin/v1/skus/:sku/load":      {"admin", 200},
	"admin POST /admin/v1/skus/:sku/adjust":    {"admin", 200},
	"admin POST /admin/v1/skus/:sku/slots":     {"admin", 200},
	"admin POST /admin/v1/skus/:sku/path":      {"admin", 200},
	"admin POST /admin/v1/skus/:sku/closeout":  {"admin", 200},
	"admin POST /admin/v1/skus/:sku/open":      {"operator", 200},
	"admin POST /admin/v1/skus/:sku/pause":     {"operator", 200},
	"admin POST /admin/v1/skus/:sku/close":     {"operator", 200},
	"admin POST /admin/v1/skus/:sku/reshare":   {"operator", 200},
	"admin POST /admin/v1/skus/:sku/reconcile": {"operator", 200},
	"admin POST /admin/v1/orders/:id/cancel":   {"operator", 200},
	"admin POST /admin/v1/dead/:seq/replay":    {"operator", 200},
	"admin POST /admin/v1/dead/:seq/drop":      {"operator", 200},
}

// claim is one credential and the status that it leads to; 0: the route's own.
type claim struct {
	name, header string
	status       int
}

// operatorClaims are every credential for a route of this role.
func operatorClaims(least auth.Role) []claim {
	all := []claim{
		{"none", "", 401},
		{"an empty one", "Authorization: ", 401},
		{"no scheme", "Authorization: admin", 401},
		{"another scheme", "Authorization: Basic admin", 401},
		{"wrong", "Authorization: Bearer nobody", 401},
		{"expired", "Authorization: Bearer expired", 401},
		{"a buyer's word", "X-Buyer-Id: u1", 401},
	}
	for _, have := range auth.Roles {
		status := 0
		if !have.May(least) {
			status = 403
		}
		all = append(all, claim{"role " + string(have), "Authorization: Bearer " + string(have), status})
	}
	return all
}

// buyerClaims are every credential of a buyer; the good ones are u1's.
func buyerClaims(t *testing.T, cfg auth.Config) []claim {
	forged := cfg
	forged.JWTSecrets = []string{strings.Repeat("x", auth.MinSecret)}
	return []claim{
		{"none", "", 401},
		{"wrong", bearer(t, forged, "u1", testNow), 401},
		{"expired", bearer(t, cfg, "u1", testNow.Add(-24*time.Hour)), 401},
		{"an operator's", "Authorization: Bearer admin", 401},
		{"a gateway's", "X-Buyer-Id: u1", 0},
		{"a token", bearer(t, cfg, "u1", testNow), 0},
	}
}

// Each route of either listener is tried with every credential there is. A route without a line in the table fails.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	cfg := everyWay()
	n := startNodeFor(t, buyersOf(t, cfg), func(c *Config) { c.PaymentSecrets = []string{secretNow} })
	n.put(orderOf(sale.OrderClosed))
	n.shop.set(func() {
		n.shop.result = sale.Result{Code: sale.Accepted, Order: sale.Order{ID: someID, State: sale.OrderQueued}}
	})
	n.desk.set(func() {
		n.desk.letters, n.desk.order = []sale.DeadLetter{letter(1)}, orderOf(sale.OrderClosed)
		n.desk.settled = sale.Settled{Outcome: sale.Changed, Order: orderOf(sale.OrderClosed)}
	})
	tried := map[string]bool{}
	for name, side := range map[string]struct {
		url    string
		routes []string
	}{"public": {n.publicURL(), routesOf(n, "public")}, "admin": {n.adminURL(), routesOf(n, "admin")}} {
		for _, route := range side.routes {
			line, known := access[name+" "+route]
			if !known {
				t.Errorf("%s %s: who may use it?", name, route)
				continue
			}
			tried[name+" "+route] = true
			for _, c := range n.claims(t, cfg, line.who) {
				want := c.status
				if want == 0 {
					want = line.status
				}
				if got := n.claimed(t, side.url, route, c); got.status != want {
					t.Errorf("%s %s with %s: %d %s, want %d", name, route, c.name, got.status, got.body, want)
				}
			}
		}
	}
	for route := range access {
		if !tried[route] {
			t.Errorf("%s: is served no more", route)
		}
	}
}

func routesOf(n *node, side string) (all []string) {
	engine := n.public
	if side == "admin" {
		engine = n.admin
	}
	for _, r := range engine.Routes() {
		all = append(all, r.Method+" "+r.Path)
	}
	return all
}

func (n *node) claims(t *testing.T, cfg auth.Config, who string) []claim {
	switch who {
	case anyone:
		return []claim{{"none", "", 0}, {"a wrong one", "Authorization: Bearer nobody", 0}}
	case buyer:
		return buyerClaims(t, cfg)
	case provider:
		return []claim{{"none", "", 401}, {"wrong", secretElse, 401}, {"expired", "late", 401}, {"an admin's token", "Authorization: Bearer admin", 401}, {"right", secretNow, 0}}
	}
	return operatorClaims(auth.Role(who))
}

// claimed makes a request of a route that lacks nothing but, maybe, the credential.
func (n *node) claimed(t *testing.T, base, route string, c claim) reply {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	body := goodBodies[route]
	header := []string{"Content-Type: application/json", c.header}
	switch path {
	case "/v1/skus/:sku/orders":
		body = `{"quantity":1}`
	case "/v1/payments":
		body = paymentBody
		header = append(header[:1], webhook(t, c.header)...)
	}
	if method != http.MethodGet {
		header = append(header, "X-Reason: a test")
	}
	req, err := http.NewRequest(method, base+example.Replace(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		if name, value, ok := strings.Cut(line, ": "); ok {
			req.Header.Set(name, value)
		}
	}
	return do(t, req)
}

// webhook signs a callback with a secret; "late" is one of the past, anything else a header of its own.
func webhook(t *testing.T, secret string) []string {
	switch {
	case secret == "late":
		return signed(t, secretNow, "msg_1", testNow.Add(-time.Hour), paymentBody)
	case strings.HasPrefix(secret, "whsec_"):
		return signed(t, secret, "msg_1", testNow, paymentBody)
	}
	return []string{secret}
}
