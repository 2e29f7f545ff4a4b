package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

const (
	shopSigner = "shop"
	demoOrders = "/v1/skus/demo/orders"
)

var shopSecret = strings.Repeat("s", auth.MinSecret)

// everyWay is a configuration with all ways on.
func everyWay() auth.Config {
	cfg := auth.DefaultConfig()
	cfg.Buyers = auth.Ways[:]
	cfg.JWTSecrets, cfg.Audience = []string{strings.Repeat("j", auth.MinSecret)}, "stockade"
	cfg.Signers = []string{shopSigner + ":" + shopSecret}
	return cfg
}

func bearer(t testing.TB, cfg auth.Config, buyer string, at time.Time) string {
	t.Helper()
	token, err := auth.SignToken(cfg, buyer, at, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return "Authorization: Bearer " + token
}

// signed returns a request that another server signed just now, and can be sent as often as a test likes.
func (n *node) signed(t testing.TB, method, target, body, buyer string, header ...string) func() *http.Request {
	t.Helper()
	made := func() *http.Request {
		req, err := http.NewRequest(method, n.publicURL()+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Set(name, value)
		}
		return req
	}
	first := made()
	if err := auth.SignRequest(first, shopSigner, shopSecret, buyer, []byte(body), testNow); err != nil {
		t.Fatal(err)
	}
	return func() *http.Request {
		again := made()
		again.Header = first.Header.Clone()
		return again
	}
}

func do(t testing.TB, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

func checkUnauthenticated(t *testing.T, got reply, field, challenge string) {
	t.Helper()
	p := readProblem(t, got)
	if got.status != 401 || p.Code != "UNAUTHENTICATED" || p.Field != field || p.Detail == "" || got.header.Get("WWW-Authenticate") != challenge {
		t.Errorf("got %d %s, %q, want 401 for %s and %q", got.status, got.body, got.header.Get("WWW-Authenticate"), field, challenge)
	}
}

// buyersAsked lists the buyers whose purchases reached the service.
func (n *node) buyersAsked() (buyers []string) {
	n.shop.set(func() {
		for _, r := range n.shop.bought {
			buyers = append(buyers, r.Buyer)
		}
	})
	return buyers
}

// What a token or a signature says counts, whatever X-Buyer-Id says, for the bucket as for the order.
func TestTheVerifiedBuyerBuys(t *testing.T) {
	cfg := everyWay()
	n := startNodeFor(t, buyersOf(t, cfg), nil)
	token := bearer(t, cfg, "u1", testNow)
	for _, header := range [][]string{
		{token}, {token, "X-Buyer-Id: u2"}, {token, "X-Buyer-Id: u2", "x-buyer-id: u3"}, {token, "X-Buyer-Id: "},
	} {
		if got := send(t, "POST", n.publicURL()+demoOrders, `{"quantity":1}`, header...); got.status != 409 {
			t.Errorf("%q: %d %s", header[1:], got.status, got.body)
		}
	}
	if got := do(t, n.signed(t, "POST", demoOrders, `{"quantity":7}`, "u1", "Idempotency-Key: k1")()); got.status != 409 {
		t.Errorf("signed: %d %s", got.status, got.body)
	}
	if got := n.buy(t, `{"quantity":1}`); got.status != 409 {
		t.Errorf("by header: %d %s", got.status, got.body)
	}
	want := slices.Repeat([]string{"u1"}, 6)
	if got := n.buyersAsked(); !slices.Equal(got, want) {
		t.Errorf("bought by %q", got)
	}
	n.shop.set(func() {
		if r := n.shop.bought[4]; r.Key != "k1" || r.Quantity != 7 {
			t.Errorf("a signed purchase arrives as %+v", r)
		}
	})
	n.buckets.set(func() {
		if !slices.Equal(n.buckets.buyers, want) {
			t.Errorf("charged %q", n.buckets.buyers)
		}
	})
}

// Every route that is not for everybody asks who the buyer is.
func TestEveryBuyersRouteAsksWhoItIs(t *testing.T) {
	forAll := []string{"GET /livez", "GET /readyz", "GET /openapi.yaml", "GET /v1/skus/:sku", "POST /v1/payments"}
	cfg := everyWay()
	cfg.Buyers = []string{auth.ByJWT}
	n := startNodeFor(t, buyersOf(t, cfg), nil)
	asked := 0
	for _, r := range n.public.Routes() {
		path := strings.NewReplacer(":sku", "demo", ":id", anyID).Replace(r.Path)
		for name, header := range map[string]string{
			"nothing": "X-Nothing: 1", "X-Buyer-Id": "X-Buyer-Id: u1",
			"expired": bearer(t, cfg, "u1", testNow.Add(-time.Hour)), "signature": "Stockade-Signature: x",
		} {
			got := send(t, r.Method, n.publicURL()+path, "", header)
			public := slices.Contains(forAll, r.Method+" "+r.Path)
			if unknown := strings.Contains(got.body, `"code":"UNAUTHENTICATED"`); unknown == public {
				t.Errorf("%s %s with %s: %d %s", r.Method, r.Path, name, got.status, got.body)
			}
			if !public {
				asked++
			}
		}
	}
	if asked < 4*6 {
		t.Errorf("only %d refusals", asked)
	}
	if len(n.buyersAsked()) != 0 {
		t.Error("an unknown buyer reached the service")
	}
	n.buckets.set(func() {
		if len(n.buckets.buyers) != 0 {
			t.Errorf("charged %q", n.buckets.buyers)
		}
	})
}

// The peer of the connection has to be a gateway. X-Forwarded-For does not make it one, not even a trusted proxy's.
func TestOnlyGatewaysNameBuyers(t *testing.T) {
	cfg := auth.DefaultConfig()
	cfg.Gateways = []string{"10.0.0.0/8", "::1/128"}
	n := startNodeFor(t, buyersOf(t, cfg), func(c *Config) { c.TrustedProxies = []string{"127.0.0.0/8"} })
	for _, forwarded := range []string{"", "10.0.0.1", "127.0.0.1, 10.0.0.1"} {
		got := n.buy(t, `{"quantity":1}`, "X-Forwarded-For: "+forwarded)
		checkUnauthenticated(t, got, "X-Buyer-Id", `Gateway header="X-Buyer-Id"`)
	}
	if len(n.buyersAsked()) != 0 {
		t.Error("a peer that is no gateway bought")
	}
	n = startNodeFor(t, nil, nil)
	if got := n.buy(t, `{"quantity":1}`); got.status != 401 {
		t.Errorf("a node that knows nobody: %d %s", got.status, got.body)
	}
}

func TestCredentialsThatAreWrong(t *testing.T) {
	cfg := everyWay()
	n := startNodeFor(t, buyersOf(t, cfg), nil)
	good := bearer(t, cfg, "u1", testNow)
	const invalid = `Bearer error="invalid_token"`
	for name, header := range map[string][]string{
		"another scheme":        {"Authorization: Basic dTE6c2VjcmV0", "X-Buyer-Id: u1"}, // a gateway that passes on what is not for us
		"expired":               {bearer(t, cfg, "u1", testNow.Add(-time.Hour))},
		"future":                {bearer(t, cfg, "u1", testNow.Add(time.Hour))},
		"no buyer's id":         {bearer(t, cfg, "u1\r\nX-Buyer-Id: u2", testNow)},
		"huge":                  {"Authorization: Bearer " + strings.Repeat("a", auth.MaxToken+1)},
		"changed":               {good + "A"},
		"not signed, a gateway": {"Authorization: Bearer a.b.c", "X-Buyer-Id: u1"},
	} {
		t.Run(name, func(t *testing.T) {
			checkUnauthenticated(t, send(t, "POST", n.publicURL()+demoOrders, `{"quantity":1}`, header...), "Authorization", invalid)
		})
	}
	for field, lines := range map[string][]string{
		"Authorization": {good, good}, "Stockade-Signature": {"Stockade-Signature: a", "Stockade-Signature: b"},
	} {
		got := send(t, "POST", n.publicURL()+demoOrders, `{"quantity":1}`, lines...)
		if p := readProblem(t, got); got.status != 400 || p.Field != field {
			t.Errorf("two of %s: %d %s", field, got.status, got.body)
		}
	}
	checkUntouched(t, n)
}

// Another buyer's order is not there, to look at, to follow, or to cancel.
func TestAnotherBuyersOrderIsNotThere(t *testing.T) {
	cfg := everyWay()
	n := startNodeFor(t, buyersOf(t, cfg), nil)
	n.put(orderOf(sale.OrderCreated)) // u1's
	order := n.publicURL() + "/v1/orders/" + someID.String()
	mine, theirs := bearer(t, cfg, "u1", testNow), bearer(t, cfg, "u2", testNow)
	if got := send(t, "GET", order, "", mine); got.status != 200 {
		t.Fatalf("the buyer's own: %d %s", got.status, got.body)
	}
	for _, path := range []string{"", "/events", "?sku=demo"} {
		got := send(t, "GET", order+path, "", theirs, "X-Buyer-Id: u1")
		if p := readProblem(t, got); got.status != 404 || p.Code != "ORDER_NOT_FOUND" || strings.Contains(got.body, "u1") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := send(t, "GET", n.publicURL()+"/v1/orders", "", theirs, "X-Buyer-Id: u1"); got.status != 200 || strings.Contains(got.body, someID.String()) {
		t.Errorf("the list: %d %s", got.status, got.body)
	}
	n.desk.set(func() { n.desk.err = sale.ErrNotFound })
	send(t, "POST", order+"/cancel", "", theirs, "X-Buyer-Id: u1")
	n.desk.set(func() {
		if len(n.desk.asked) != 1 || n.desk.asked[0].Buyer != "u2" {
			t.Errorf("cancelled as %+v", n.desk.asked)
		}
	})
}

func TestSignedRequestsOverTheWire(t *testing.T) {
	n := startNodeFor(t, buyersOf(t, everyWay()), nil)
	const body = `{"quantity":1}`
	purchase := n.signed(t, "POST", demoOrders+"?a=%2F", body, "u1", "Idempotency-Key: k1")
	refused := func(name string, req *http.Request) {
		t.Helper()
		t.Run(name, func(t *testing.T) { checkUnauthenticated(t, do(t, req), "Stockade-Signature", "Stockade-Signature") })
	}
	for name, change := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = "GET"; r.URL.Path = "/v1/orders" },
		"path":   func(r *http.Request) { r.URL.Path = "/v1/skus/other/orders" },
		"query":  func(r *http.Request) { r.URL.RawQuery = "a=/" },
		"buyer":  func(r *http.Request) { r.Header.Set("X-Buyer-Id", "u2") },
		"key":    func(r *http.Request) { r.Header.Set("Idempotency-Key", "k2") },
		"body": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"quantity":2}`)), int64(len(body))
		},
		"nonce": func(r *http.Request) {
			r.Header.Set("Stockade-Signature", strings.Replace(r.Header.Get("Stockade-Signature"), "nonce=", "nonce=x", 1))
		},
	} {
		req := purchase()
		change(req)
		refused(name, req)
	}
	checkUntouched(t, n)

	if got := do(t, purchase()); got.status != 409 { // SOLD_OUT: it reached the service
		t.Errorf("as it was signed: %d %s", got.status, got.body)
	}
	refused("again", purchase())
	old := purchase()
	if err := auth.SignRequest(old, shopSigner, shopSecret, "u1", []byte(body), testNow.Add(-31*time.Second)); err != nil {
		t.Fatal(err)
	}
	refused("31 seconds old", old)

	for _, lines := range [][]string{nil, {"Authorization: Bearer x"}} {
		got := do(t, n.signed(t, "POST", demoOrders, body, "u1", lines...)())
		if p := readProblem(t, got); got.status != 400 || p.Field != "Idempotency-Key" {
			t.Errorf("a purchase that a replay would repeat: %d %s", got.status, got.body)
		}
	}
	chunked := n.signed(t, "POST", demoOrders, body, "u1", "Idempotency-Key: k3")()
	chunked.Body, chunked.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(body[:3]), strings.NewReader(body[3:]))), -1
	if got := do(t, chunked); got.status != 409 {
		t.Errorf("chunked: %d %s", got.status, got.body)
	}
	large := n.signed(t, "POST", demoOrders, strings.Repeat(" ", 64<<10+1), "u1", "Idempotency-Key: k4")
	if got := do(t, large()); got.status != 413 {
		t.Errorf("too large: %d %s", got.status, got.body)
	}
	if got := do(t, n.signed(t, "GET", "/v1/orders?limit=1", "", "u1")()); got.status != 200 {
		t.Errorf("a read: %d %s", got.status, got.body)
	}
	if got := n.buyersAsked(); !slices.Equal(got, []string{"u1", "u1"}) {
		t.Errorf("bought by %q", got)
	}
}

// A body that was read to check its signature leaves the connection as good as new.
func TestSignedRequestsShareAConnection(t *testing.T) {
	n := startNodeFor(t, buyersOf(t, everyWay()), nil)
	conn, err := net.Dial("tcp", n.PublicAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	answers := bufio.NewReader(conn)
	for i := range 4 {
		req := n.signed(t, "POST", demoOrders, `{"quantity":1}`, "u1", fmt.Sprintf("Idempotency-Key: k%d", i))()
		if i%2 == 1 {
			req.Body, req.ContentLength, req.TransferEncoding = io.NopCloser(strings.NewReader(`{"quantity":1}`)), -1, []string{"chunked"}
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 409 {
			t.Errorf("request %d: %d %s", i, resp.StatusCode, text)
		}
	}
}

// A node that cannot remember one more nonce does not take the request, and says that it may come again.
func TestAFullNonceStoreIsBusy(t *testing.T) {
	cfg := everyWay()
	cfg.MaxNonces = 2
	n := startNodeFor(t, buyersOf(t, cfg), nil)
	for i, want := range []int{409, 409, 503} {
		got := do(t, n.signed(t, "POST", demoOrders, `{"quantity":1}`, "u1", fmt.Sprintf("Idempotency-Key: k%d", i))())
		if got.status != want {
			t.Errorf("request %d: %d %s", i, got.status, got.body)
		}
		if want == 503 && (readProblem(t, got).Code != "BUSY" || got.header.Get("Retry-After") == "") {
			t.Errorf("got %v %s", got.header, got.body)
		}
	}
	if len(n.buyersAsked()) != 2 {
		t.Error("a request that nobody remembers reached the service")
	}
	if got := n.results.Counts()[sale.Busy.String()]; got != 1 {
		t.Errorf("counted BUSY %d times", got)
	}
}

// An address that nobody vouches for does not choose whose bucket pays.
func TestASpoofedAddressBuysNoFreshBucket(t *testing.T) {
	n := startNodeFor(t, buyersBehind(t, "192.0.2.0/24"), func(c *Config) { c.ExemptAddresses = nil })
	for i := range 20 {
		n.buy(t, `{"quantity":1}`, fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i), fmt.Sprintf("X-Real-Ip: 203.0.113.%d", i),
			fmt.Sprintf("Forwarded: for=203.0.113.%d", i))
	}
	n.buckets.set(func() {
		if want := slices.Repeat([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, 20); !slices.Equal(n.buckets.addresses, want) {
			t.Errorf("charged %v", n.buckets.addresses)
		}
	})
}

// In a sale nearly every request comes through a gateway.
func TestAGatewaysWordCostsNoAllocation(t *testing.T) {
	cfg := everyWay()
	cfg.Gateways = []string{"10.0.0.0/8", "::1/128", "0.0.0.0/32"} // the last is who a request without a connection is from
	who := &identity{buyers: buyersOf(t, cfg)}
	c := app.NewContext(0)
	c.Request.Header.Set("X-Buyer-Id", "u1")
	next := 0
	c.SetHandlers(app.HandlersChain{func(context.Context, *app.RequestContext) { next++ }})
	allocations := testing.AllocsPerRun(200, func() {
		c.SetIndex(-1)
		who.purchase(context.Background(), c)
	})
	if allocations != 0 || next == 0 {
		t.Errorf("%v allocations, %d requests passed", allocations, next)
	}
}
