package main

import (
	"bufio"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"stockade/biz/auth"
	"stockade/biz/handler"
)

// The OWASP API Security Top 10 of 2023, one test for each, against a real node.

const (
	one      = `{"quantity":1}`
	strange  = "0198c0de-0000-7000-8000-000000000001" // an order that there is not
	hsHeader = `{"alg":"HS256","typ":"JWT"}`
)

// Who knows another buyer's order id, key or purchase token can do nothing with it.
func TestOWASP01BrokenObjectLevelAuthorization(t *testing.T) {
	x := startTarget(t)
	id := buyOne(t, x.Public, "ada")
	keyed := x.try(t, "POST", x.purchases(), one, x.buyer(t, "ada"), "Idempotency-Key: k1")
	var token handler.TokenJSON
	if err := json.Unmarshal([]byte(x.try(t, "POST", x.Public+"/v1/skus/"+demoSKU+"/token", "", x.buyer(t, "ada")).body), &token); err != nil {
		t.Fatal(err)
	}
	check, eve := x.untouched(t), x.buyer(t, "eve")
	for _, name := range []string{id, strings.ToUpper(id)} {
		order := x.Public + "/v1/orders/" + name
		for _, tc := range []struct{ method, path string }{
			{"GET", ""}, {"GET", "?sku=" + demoSKU}, {"GET", "?buyer=ada"}, {"GET", "/events"}, {"GET", "/events?sku=" + demoSKU}, {"POST", "/cancel"},
		} {
			got := x.try(t, tc.method, order+tc.path, "", eve, "X-Buyer-Id: ada")
			got.refused(t, tc.method+" "+tc.path, 404, "ORDER_NOT_FOUND", "id")
			// What is not theirs and what is not there look the same.
			none := x.try(t, tc.method, strings.Replace(order+tc.path, name, strange, 1), "", eve)
			if requestIDs.ReplaceAllString(got.body, "") != requestIDs.ReplaceAllString(none.body, "") {
				t.Errorf("%s %s tells that the order exists: %s, but %s", tc.method, tc.path, got, none)
			}
		}
	}
	for _, query := range []string{"", "?after=" + strange, "?buyer=ada", "?limit=200"} {
		if got := x.try(t, "GET", x.Public+"/v1/orders"+query, "", eve); got.status != 200 || got.body != `{"orders":[]}` {
			t.Errorf("orders%s: %s", query, got)
		}
	}
	x.try(t, "POST", x.purchases(), one, eve, "Purchase-Token: "+token.Token).refused(t, "ada's token", 403, "PURCHASE_TOKEN_REFUSED", "Purchase-Token")
	check()

	other := x.try(t, "POST", x.purchases(), one, eve, "Idempotency-Key: k1")
	if keyed.status != 202 || other.status != 202 || other.header.Get("Location") == keyed.header.Get("Location") {
		t.Errorf("one key of two buyers: %s and %s", keyed, other)
	}
	if got := x.try(t, "GET", x.Public+"/v1/orders/"+id, "", x.buyer(t, "ada")); got.status != 200 || !strings.Contains(got.body, `"state":"CREATED"`) {
		t.Errorf("ada's own order: %s", got)
	}
}

var requestIDs = regexp.MustCompile(`"request_id":"[^"]*"`)

// Nobody is believed without a good credential of the right kind, and a refusal costs nothing.
func TestOWASP02BrokenAuthentication(t *testing.T) {
	x := startTarget(t, "auth.gateways=203.0.113.0/24")
	check, secret := x.untouched(t), x.tokens.JWTSecrets[0]
	claims := func(change string) string {
		return fmt.Sprintf(`{"sub":"ada","aud":"%s","iat":%d,"exp":%d%s}`, devAudience, time.Now().Unix(), time.Now().Add(time.Hour).Unix(), change)
	}
	old := fmt.Sprintf(`{"sub":"ada","aud":"%s","exp":%d}`, devAudience, time.Now().Add(-time.Hour).Unix())
	good := forge(secret, hsHeader, claims(""))
	bearer := func(token string) []string { return []string{"Authorization: Bearer " + token} }
	for name, header := range map[string][]string{
		"nothing":                nil,
		"a buyer's word":         {"X-Buyer-Id: ada"},
		"a forwarded word":       {"X-Buyer-Id: ada", "X-Forwarded-For: 203.0.113.1"},
		"no algorithm":           bearer(strings.TrimRight(forge(secret, `{"alg":"none"}`, claims("")), "=")),
		"no signature":           bearer(good[:strings.LastIndex(good, ".")+1]),
		"another key":            bearer(forge(newSecret(), hsHeader, claims(""))),
		"no key":                 bearer(forge("", hsHeader, claims(""))),
		"another algorithm":      bearer(forge(secret, `{"alg":"HS384"}`, claims(""))),
		"a public key's":         bearer(forge(secret, `{"alg":"RS256","kid":"a"}`, claims(""))),
		"expired":                bearer(forge(secret, hsHeader, old)),
		"no expiry":              bearer(forge(secret, hsHeader, `{"sub":"ada","aud":"`+devAudience+`"}`)),
		"not yet":                bearer(forge(secret, hsHeader, claims(fmt.Sprintf(`,"nbf":%d`, time.Now().Add(time.Hour).Unix())))),
		"for others":             bearer(forge(secret, hsHeader, strings.Replace(claims(""), devAudience, "others", 1))),
		"nobody":                 bearer(forge(secret, hsHeader, strings.Replace(claims(""), "ada", "", 1))),
		"a purchase token":       bearer(forge(secret, hsHeader, strings.Replace(claims(""), devAudience, "stockade:purchase:demo", 1))),
		"huge":                   bearer(forge(secret, hsHeader, claims(`,"x":"`+strings.Repeat("x", auth.MaxToken)+`"`))),
		"a password":             {"Authorization: Basic YWRhOmFkYQ=="},
		"an admin's":             {x.as(auth.RoleAdmin)},
		"a signature switch off": {"X-Buyer-Id: ada", "Stockade-Signature: key=a,t=1,nonce=" + strings.Repeat("n", 16) + ",v1=" + strings.Repeat("0", 64)},
	} {
		for _, route := range [][3]string{
			{"POST", x.purchases(), one},
			{"POST", x.Public + "/v1/skus/" + demoSKU + "/token", ""},
			{"GET", x.Public + "/v1/orders", ""},
			{"GET", x.Public + "/v1/orders/" + strange, ""},
			{"POST", x.Public + "/v1/orders/" + strange + "/cancel", ""},
		} {
			got := x.try(t, route[0], route[1], route[2], header...)
			got.refused(t, name+" "+route[1], 401, "UNAUTHENTICATED", "")
			if got.header.Get("WWW-Authenticate") == "" || strings.Contains(got.body, secret) {
				t.Errorf("%s: %v %s", name, got.header, got)
			}
		}
	}
	for _, header := range []string{"X-Nothing: 1", "Authorization: Bearer " + good, "Authorization: Bearer ", "Authorization: Bearer stk_" + strings.Repeat("A", 43)} {
		x.try(t, "POST", x.Admin+"/admin/v1/skus/"+demoSKU+"/pause", "", header, "X-Reason: x").refused(t, "admin, "+header, 401, "UNAUTHENTICATED", "")
	}
	check()
	if got := x.try(t, "POST", x.purchases(), one, bearer(good)...); got.status != 202 {
		t.Errorf("the good token: %s", got)
	}
}

// Callers set what is theirs to set, by names that are known, and see what is theirs to see.
func TestOWASP03BrokenObjectPropertyLevelAuthorization(t *testing.T) {
	x := startTarget(t, "limiter.buyerPerSecond=0")
	id := buyOne(t, x.Public, "ada")
	check, eve, admin := x.untouched(t), x.buyer(t, "eve"), x.as(auth.RoleAdmin)
	for _, name := range []string{"buyer", "price", "limit", "state", "order_id", "sku", "accepted_at", "expires_at", "epoch", "__proto__", "Quantity"} {
		body := `{"quantity":1,"` + name + `":"ada"}`
		x.try(t, "POST", x.purchases(), body, eve).refused(t, "purchase", 400, "MALFORMED_BODY", name)
		x.try(t, "POST", x.Public+"/v1/skus/"+demoSKU+"/token", `{"`+name+`":"ada"}`, eve).refused(t, "token", 400, "MALFORMED_BODY", name)
		x.try(t, "POST", x.Public+"/v1/orders/"+id+"/cancel", `{"`+name+`":"ada"}`, x.buyer(t, "ada")).refused(t, "cancel", 400, "MALFORMED_BODY", name)
	}
	x.try(t, "POST", x.purchases(), `{"quantity":1,"quantity":2}`, eve).refused(t, "twice", 400, "MALFORMED_BODY", "quantity")
	for _, name := range []string{"state", "ledger", "epoch", "promised", "sold", "mode"} {
		body := `{"sku":"new","total":5,"` + name + `":"OPEN"}`
		x.try(t, "POST", x.Admin+"/admin/v1/skus", body, admin, "X-Reason: x").refused(t, "create", 400, "MALFORMED_BODY", name)
	}
	for _, name := range []string{"actor", "changed_at", "until"} {
		body := `{"value":"closed","reason":"r","` + name + `":"eve"}`
		x.try(t, "PUT", x.Admin+"/admin/v1/toggles/entrance", body, admin).refused(t, "toggle", 400, "MALFORMED_BODY", name)
	}
	x.try(t, "GET", x.Admin+"/admin/v1/skus/new", "", admin).refused(t, "nothing was created", 404, "SKU_NOT_FOUND", "")
	check()

	members(t, "a SKU", x.try(t, "GET", x.Public+"/v1/skus/"+demoSKU, "").body,
		"sku", "state", "opens_at", "closes_at", "limit", "left", "server_time")
	members(t, "an order", x.try(t, "GET", x.Public+"/v1/orders/"+id, "", x.buyer(t, "ada")).body,
		"order_id", "sku", "buyer", "quantity", "state", "accepted_at", "expires_at")
	bought := x.try(t, "POST", x.purchases(), one, eve)
	members(t, "an accepted purchase", bought.body, "order_id", "state", "code", "result")
	members(t, "a token", x.try(t, "POST", x.Public+"/v1/skus/"+demoSKU+"/token", "", eve).body, "token", "order_id", "sku", "expires_at")
	members(t, "a refusal", x.try(t, "POST", x.purchases(), `{"quantity":9}`, eve).body,
		"type", "title", "status", "code", "result", "limit", "request_id")
}

// Whatever a caller can make large, many or long has a bound, and a bound cannot be configured away.
func TestOWASP04UnrestrictedResourceConsumption(t *testing.T) {
	x := startTarget(t, "limiter.maxInFlight=1", "router.maxStreams=1")
	id := buyOne(t, x.Public, "ada")
	buyOne(t, x.Public, "ada")
	check, ada, eve := x.untouched(t), x.buyer(t, "ada"), x.buyer(t, "eve")
	for name, body := range map[string]string{
		"large": one + strings.Repeat(" ", handler.MaxBody), "larger": strings.Repeat("x", 1<<20),
	} {
		x.try(t, "POST", x.purchases(), body, eve).refused(t, name, 413, "BODY_TOO_LARGE", "body")
	}
	deep := `{"quantity":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`
	x.try(t, "POST", x.purchases(), deep, eve).refused(t, "deep", 400, "MALFORMED_BODY", "body")
	x.try(t, "POST", x.purchases(), `{"quantity":1001}`, eve).refused(t, "many units", 422, "INVALID_FIELD", "quantity")
	x.endlessHead(t)
	for _, limit := range []string{"0", "-1", "201", "1e9", "9999999999999999999"} {
		x.try(t, "GET", x.Public+"/v1/orders?limit="+limit, "", ada).refused(t, "limit "+limit, 400, "BAD_REQUEST", "limit")
	}
	var page handler.OrderPage
	if err := json.Unmarshal([]byte(x.try(t, "GET", x.Public+"/v1/orders?limit=1", "", ada).body), &page); err != nil || len(page.Orders) != 1 || page.Next == "" {
		t.Errorf("a page of one: %+v, %v", page, err)
	}

	stream, end := x.dial(t, "GET /v1/orders/"+id+"/events HTTP/1.1\r\nHost: x\r\n"+ada+"\r\n\r\n")
	if line, err := stream.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("a stream: %q, %v", line, err)
	}
	x.try(t, "GET", x.Public+"/v1/orders/"+id+"/events", "", ada).refused(t, "a second stream", 503, "TOO_MANY_STREAMS", "")
	end()

	// A body that does not come to its end holds the only place that there is, once more of it is here than the HTTP server reads
	// ahead. Who comes then is not kept waiting.
	_, end = x.dial(t, "POST /v1/skus/"+demoSKU+"/orders HTTP/1.1\r\nHost: x\r\n"+eve+"\r\nContent-Length: 60000\r\n\r\n"+strings.Repeat(" ", 20_000))
	eventually(t, "the place is taken", func() bool { return x.inFlight(t) == 1 })
	if got := x.try(t, "GET", x.Public+"/v1/skus/"+demoSKU, ""); !strings.Contains(got.body, `"reason":"OVERLOAD"`) || got.header.Get("Retry-After") == "" {
		t.Errorf("a look meanwhile: %s", got)
	}
	x.try(t, "POST", x.purchases(), one, eve).refused(t, "one too many", 503, "BUSY", "")
	end()
	eventually(t, "the place is free", func() bool { return x.inFlight(t) == 0 })
	check()

	for _, bound := range []string{
		"limiter.maxInFlight", "limiter.maxBuyers", "limiter.maxAddresses", "limiter.backlogMaxEvents", "shard.laneQueue", "shard.settleQueue",
		"mq.relayQueue", "mq.queueMaxMessages", "service.writerQueue", "service.settleQueue", "service.creditQueue", "cache.maxLoads",
		"auth.maxNonces", "router.readTimeoutMs", "router.writeTimeoutMs", "router.idleTimeoutMs", "router.streamMaxAgeMs",
	} {
		if got := runWith(t, nil, "serve", "--check-config", "--set", bound+"=0"); got.code != exitConfig || !strings.Contains(got.stderr, bound) {
			t.Errorf("%s=0: got %+v", bound, got)
		}
	}
}

// dial sends the beginning of a request by hand and leaves the connection open until the end.
func (x *target) dial(t *testing.T, request string) (from *bufio.Reader, end func()) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.Public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(devTimeout))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	end = func() { _ = conn.Close() }
	t.Cleanup(end)
	return bufio.NewReader(conn), end
}

// endlessHead sends a head that goes on until the node has had enough of it.
func (x *target) endlessHead(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.Public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(devTimeout))
	text := "GET /livez HTTP/1.1\r\nHost: x\r\n"
	for sent := 0; err == nil; text = "X-Pad: " + strings.Repeat("x", 1000) + "\r\n" {
		var n int
		n, err = io.WriteString(conn, text)
		if sent += n; sent > 64<<20 {
			t.Fatal("the head has no end")
		}
	}
	// The answer may be lost with what was sent too much.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.HasPrefix(line, "HTTP/1.1 4") {
		t.Errorf("an endless head is answered %q", line)
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		t.Errorf("an endless head: %v", err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(devTimeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// described are the methods of each path of the description that a node serves, by listener.
func (x *target) described(t *testing.T) map[string]map[string][]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal([]byte(x.try(t, "GET", x.Public+"/openapi.yaml", "").body), &doc); err != nil || len(doc.Paths) < 20 {
		t.Fatalf("%d paths, %v", len(doc.Paths), err)
	}
	all := map[string]map[string][]string{x.Public: {}, x.Admin: {}}
	for path, item := range doc.Paths {
		base := x.Public
		if strings.HasPrefix(path, "/admin/") {
			base = x.Admin
		}
		path = strings.NewReplacer("{sku}", demoSKU, "{id}", strange, "{seq}", "1", "{name}", "relay").Replace(path)
		for method := range item {
			if method != "parameters" && method != "servers" {
				all[base][path] = append(all[base][path], strings.ToUpper(method))
			}
		}
		slices.Sort(all[base][path])
	}
	return all
}

// What operators do is done by operators, on their listener, as far as their roles go.
func TestOWASP05BrokenFunctionLevelAuthorization(t *testing.T) {
	x := startTarget(t)
	check, writes := x.untouched(t), 0
	before := x.operate(t, "GET", "/admin/v1/skus/"+demoSKU, "")
	for path, methods := range x.described(t)[x.Admin] {
		for _, method := range methods {
			x.try(t, method, x.Public+path, "", x.as(auth.RoleAdmin), "X-Reason: x").refused(t, method+" "+path+" in public", 404, "ROUTE_NOT_FOUND", "")
			got := x.try(t, method, x.Admin+path, "", x.as(auth.RoleViewer), "X-Reason: x", "X-Role: admin", "X-Forwarded-User: the-admin")
			if method == "GET" {
				if got.status == 401 || got.status == 403 {
					t.Errorf("a viewer's %s: %s", path, got)
				}
				continue
			}
			writes++
			got.refused(t, "a viewer's "+method+" "+path, 403, "FORBIDDEN", "")
		}
	}
	if writes < 10 {
		t.Errorf("only %d writes were tried", writes)
	}
	pause := "/admin/v1/skus/" + demoSKU + "/pause"
	for _, path := range []string{
		"/" + pause, "/v1/.." + pause, "/v1/%2e%2e" + pause, "/ADMIN/v1/skus/" + demoSKU + "/pause", "/admin%2fv1/skus/" + demoSKU + "/pause", pause + "/", pause + ";x",
		"/v1/skus/..%2f..%2f.." + pause,
	} {
		if got := x.try(t, "POST", x.Public+path, "", x.as(auth.RoleAdmin), "X-Reason: x", "X-Original-Url: "+pause, "X-Rewrite-Url: "+pause); got.status != 404 && got.status != 400 {
			t.Errorf("%s in public: %s", path, got)
		}
		if got := x.try(t, "POST", x.Admin+path, "", x.as(auth.RoleViewer), "X-Reason: x"); got.status != 404 && got.status != 400 && got.status != 403 {
			t.Errorf("%s of a viewer: %s", path, got)
		}
	}
	// A method that is smuggled in is not heard.
	x.try(t, "GET", x.Admin+pause, "", x.as(auth.RoleViewer), "X-Http-Method-Override: POST", "X-Reason: x").refused(t, "override", 405, "METHOD_NOT_ALLOWED", "")
	x.try(t, "POST", x.Admin+"/admin/v1/skus/"+demoSKU+"/adjust", `{"add":-5}`, x.as(auth.RoleOperator), "X-Reason: x").refused(t, "an operator's adjust", 403, "FORBIDDEN", "")
	x.try(t, "PUT", x.Admin+"/admin/v1/toggles/path", `{"value":"mysql","reason":"x"}`, x.as(auth.RoleOperator)).refused(t, "an operator's path", 403, "FORBIDDEN", "")
	check()
	if after := x.operate(t, "GET", "/admin/v1/skus/"+demoSKU, ""); after != before {
		t.Errorf("the SKU was %s and is %s", before, after)
	}
}

// A sale gives each buyer their few units, by tokens that were not to be had before it began, however they are asked for.
// The scalper drill is the other half.
func TestOWASP06UnrestrictedAccessToSensitiveBusinessFlows(t *testing.T) {
	x := startTarget(t)
	x.operate(t, "POST", "/admin/v1/skus", `{"sku":"drop","total":50,"slots":4,"purchase_token":"required","opens_at":"2099-01-01T00:00:00Z"}`)
	x.operate(t, "POST", "/admin/v1/skus", `{"sku":"hot","total":50,"slots":4,"purchase_token":"required"}`)
	for _, sku := range []string{"drop", "hot"} {
		x.operate(t, "POST", "/admin/v1/skus/"+sku+"/load", "")
		x.operate(t, "POST", "/admin/v1/skus/"+sku+"/open", "")
	}
	drop, hot, bot := x.Public+"/v1/skus/drop", x.Public+"/v1/skus/hot", x.buyer(t, "bot")
	x.try(t, "POST", drop+"/token", "", bot).refused(t, "a token before the opening", 409, "NOT_ON_SALE", "")
	x.try(t, "POST", hot+"/orders", one, bot).refused(t, "no token", 403, "PURCHASE_TOKEN_REQUIRED", "Purchase-Token")
	tokenOf := func(buyer string) string {
		var token handler.TokenJSON
		if got := x.try(t, "POST", hot+"/token", "", x.buyer(t, buyer)); json.Unmarshal([]byte(got.body), &token) != nil || token.Token == "" {
			t.Fatalf("a token for %s: %s", buyer, got)
		}
		return "Purchase-Token: " + token.Token
	}
	mine := tokenOf("bot")
	x.try(t, "POST", drop+"/orders", one, bot, mine).refused(t, "a token of another SKU", 403, "PURCHASE_TOKEN_REFUSED", "")
	x.try(t, "POST", hot+"/orders", one, x.buyer(t, "ada"), mine).refused(t, "a token that was sold", 403, "PURCHASE_TOKEN_REFUSED", "")

	var orders sync.Map
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := x.try(t, "POST", hot+"/orders", one, bot, mine); got.status == 202 {
				orders.Store(got.header.Get("Location"), true)
			} else if got.status != 429 && got.status != 503 {
				t.Errorf("one token, many times: %s", got)
			}
		})
	}
	all.Wait()
	eventually(t, "the token's order", func() bool {
		got := x.try(t, "POST", hot+"/orders", one, bot, mine)
		orders.Store(got.header.Get("Location"), true)
		return got.status == 202
	})
	orders.Delete("")
	count := 0
	orders.Range(func(any, any) bool { count++; return true })
	if got := x.stock(t, "hot"); count != 1 || got.Promised != 1 {
		t.Errorf("one token made %d orders, %+v", count, got)
	}
	second := tokenOf("greedy")
	x.try(t, "POST", hot+"/orders", `{"quantity":3}`, x.buyer(t, "greedy"), second).refused(t, "more than the limit", 409, "LIMIT_REACHED", "")
	if got := x.stock(t, "hot"); got.Promised != 1 || got.Pending != 0 && got.Pending != 1 {
		t.Errorf("the limit let %+v through", got)
	}
	if got := x.stock(t, "drop"); got.Promised != 0 || got.Left != 50 {
		t.Errorf("before its opening the sale has %+v", got)
	}
}

// canary is a server that nobody has a reason to call.
func canary(t *testing.T) (url string, visits *atomic.Int64) {
	t.Helper()
	visits = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(s.Close)
	return s.URL, visits
}

// No address that a caller names is ever called: only the operator's own configuration has one.
func TestOWASP07ServerSideRequestForgery(t *testing.T) {
	trap, visits := canary(t)
	own, asked := canary(t)
	x := startTarget(t, "doctor.prometheusURL="+own)
	check, host := x.untouched(t), strings.TrimPrefix(trap, "http://")
	headers := []string{
		"X-Forwarded-Host: " + host, "Forwarded: for=1.2.3.4;host=" + host, "X-Original-Url: " + trap, "Referer: " + trap, "Host: " + host,
		"X-Callback-Url: " + trap, "X-Wap-Profile: " + trap, "X-Http-Destinationurl: " + trap, "True-Client-Ip: " + host,
	}
	claims := fmt.Sprintf(`{"sub":"eve","iss":"%s","aud":"others","exp":%d}`, trap, time.Now().Add(time.Hour).Unix())
	for _, header := range []string{
		`{"alg":"HS256","jku":"` + trap + `"}`, `{"alg":"RS256","kid":"a","jku":"` + trap + `","x5u":"` + trap + `"}`,
		`{"alg":"EdDSA","kid":"` + trap + `","jwk":{"kty":"OKP","crv":"Ed25519"}}`,
	} {
		x.try(t, "POST", x.purchases(), one, "Authorization: Bearer "+forge("k", header, claims)).refused(t, header, 401, "UNAUTHENTICATED", "")
	}
	eve := x.buyer(t, "eve")
	for _, name := range []string{"callback_url", "webhook", "url", "image", "redirect_uri"} {
		x.try(t, "POST", x.purchases(), `{"quantity":1,"`+name+`":"`+trap+`"}`, append(headers, eve)...).refused(t, name, 400, "MALFORMED_BODY", name)
		x.try(t, "POST", x.Admin+"/admin/v1/skus", `{"sku":"new","total":1,"`+name+`":"`+trap+`"}`, x.as(auth.RoleAdmin), "X-Reason: x").
			refused(t, name, 400, "MALFORMED_BODY", name)
	}
	escaped := strings.NewReplacer(":", "%3A", "/", "%2F").Replace(trap)
	x.try(t, "GET", x.Public+"/v1/skus/"+escaped, "", headers...).refused(t, "a SKU", 400, "BAD_REQUEST", "sku")
	x.try(t, "GET", x.Public+"/v1/orders/"+escaped, "", eve).refused(t, "an order", 400, "BAD_REQUEST", "id")
	x.try(t, "GET", x.Public+"/v1/orders?after="+escaped, "", eve).refused(t, "a cursor", 400, "BAD_REQUEST", "after")
	x.try(t, "PUT", x.Admin+"/admin/v1/toggles/"+escaped, `{"value":"open","reason":"x"}`, x.as(auth.RoleAdmin)).refused(t, "a toggle", 400, "BAD_REQUEST", "name")
	if got := x.try(t, "GET", x.Public+"/v1/skus/"+demoSKU+"?url="+escaped+"&callback="+escaped, "", headers...); got.status != 200 || strings.Contains(got.body, host) {
		t.Errorf("with parameters: %s", got)
	}
	// A proxy's request is not forwarded.
	from, end := x.dial(t, "GET "+trap+"/v1/skus/"+demoSKU+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	raw, err := io.ReadAll(from)
	end()
	if err != nil || !strings.Contains(string(raw), `"server_time"`) && !strings.HasPrefix(string(raw), "HTTP/1.1 4") {
		t.Errorf("a proxy's request: %s, %v", raw, err)
	}
	examined := x.try(t, "GET", x.Admin+"/admin/v1/doctor?prometheusURL="+escaped+"&prometheus="+escaped, "", append(headers, x.as(auth.RoleViewer))...)
	if examined.status != 200 || asked.Load() != 1 {
		t.Errorf("the doctor asked the configured address %d times: %s", asked.Load(), examined)
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("the address of a caller was called %d times", n)
	}
	check()
}

// Every answer, good or bad, of either listener, is one that no browser or cache does anything with, and says nothing about
// what it was made with.
func TestOWASP08SecurityMisconfiguration(t *testing.T) {
	x := startTarget(t)
	eve := x.buyer(t, "eve")
	for _, base := range []string{x.Public, x.Admin} {
		for _, got := range []heard{
			x.try(t, "GET", base+"/livez", "", "Origin: https://evil.example"), x.try(t, "GET", base+"/none", "", eve), x.try(t, "PATCH", base+"/livez", ""),
			x.try(t, "POST", base+"/livez", strings.Repeat("x", handler.MaxBody+1)), x.try(t, "GET", base+"/v1/orders", "", eve),
			x.try(t, "GET", base+"/v1/orders/x", "", eve), x.try(t, "POST", base+"/v1/skus/"+demoSKU+"/orders", "{", eve),
			x.try(t, "GET", base+"/admin/v1/skus", ""), x.try(t, "GET", base+"/admin/v1/skus", "", x.as(auth.RoleAdmin)),
			x.try(t, "OPTIONS", base+"/livez", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST"),
		} {
			h := got.header
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" ||
				h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: %v", got, h)
			}
			for name := range h {
				if strings.HasPrefix(name, "Access-Control-") || name == "X-Powered-By" || name == "Set-Cookie" {
					t.Errorf("%s: has %s", got, name)
				}
			}
			if server := h.Get("Server"); server != "stockade" && server != "" || strings.Contains(got.body, ".go:") || strings.Contains(got.body, "goroutine") {
				t.Errorf("%s: server %q", got, server)
			}
		}
		for _, method := range []string{"TRACE", "OPTIONS", "PUT", "DELETE", "PATCH", "PROPFIND", "get", "BREW"} {
			got := x.try(t, method, base+"/livez", "", "X-Secret: 12345")
			got.refused(t, method, 405, "METHOD_NOT_ALLOWED", "")
			if strings.Contains(got.body, "12345") || got.header.Get("Allow") != "GET" {
				t.Errorf("%s: %v %s", method, got.header, got)
			}
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		x.try(t, "GET", x.Admin+"/admin/v1/skus", "", x.as(auth.RoleAdmin), "Origin: "+origin).refused(t, origin, 403, "CROSS_ORIGIN", "Origin")
	}

	// Secrets that a node makes for itself are its own, and only its user reads the file with one.
	dir := t.TempDir()
	first, _ := startDev(t, filepath.Join(dir, "a", "stockade.db"))
	second, _ := startDev(t, filepath.Join(dir, "b", "stockade.db"))
	if first.Token == "" || first.Token == second.Token {
		t.Error("two nodes have one admin token")
	}
	if secret := func(b banner) string { return b.Pay[strings.Index(b.Pay, "whsec_"):] }; secret(first) == secret(second) {
		t.Error("two nodes have one payment secret")
	}
	if info, err := os.Stat(first.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the admin token's file: %v, %v", info, err)
	}
	x.try(t, "GET", second.Admin+"/admin/v1/skus", "", "Authorization: Bearer "+first.Token).refused(t, "another node's token", 401, "UNAUTHENTICATED", "")
}

// What is described is served, with these methods and no others, and what tools commonly leave open is not there. That no
// route is served without being described is for the tests of package router, which can list them.
func TestOWASP09ImproperInventoryManagement(t *testing.T) {
	x := startTarget(t)
	for base, paths := range x.described(t) {
		for path, methods := range paths {
			got := x.try(t, "BREW", base+path, "", x.as(auth.RoleAdmin))
			got.refused(t, path, 405, "METHOD_NOT_ALLOWED", "")
			if allow := got.header.Get("Allow"); allow != strings.Join(methods, ", ") {
				t.Errorf("%s serves %s, described are %v", path, allow, methods)
			}
		}
		for _, path := range []string{
			"/", "/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/vars", "/metrics", "/actuator", "/actuator/env",
			"/swagger", "/swagger/index.html", "/docs", "/api-docs", "/graphql", "/console", "/admin", "/admin/", "/admin/v1", "/admin/v2/skus", "/v0/skus/" + demoSKU,
			"/v1", "/v1/", "/v2/skus/" + demoSKU, "/v1beta/orders", "/internal/orders", "/test", "/.env", "/.git/config", "/config", "/status", "/health",
			"/openapi.json", "/v1/admin", "/v1/buyers", "/favicon.ico", "/robots.txt", "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd",
		} {
			for _, method := range []string{"GET", "POST"} {
				x.try(t, method, base+path, "", x.as(auth.RoleAdmin), "X-Reason: x").refused(t, method+" "+path, 404, "ROUTE_NOT_FOUND", "")
			}
		}
	}
}

// What others send is checked like what buyers send: callbacks of the payment provider, keys of the issuer of tokens, and
// answers of the monitoring.
func TestOWASP10UnsafeConsumptionOfAPIs(t *testing.T) {
	x := startTarget(t)
	id := buyOne(t, x.Public, "ada")
	check, now := x.untouched(t), time.Now()
	body := `{"payment_id":"pay_1","order_id":"` + id + `"}`
	pay := func(secret string, at time.Time, signed, sent string) heard {
		pairs, err := handler.SignWebhook(secret, "msg_1", at, []byte(signed))
		if err != nil {
			t.Fatal(err)
		}
		var header []string
		for i := 0; i < len(pairs); i += 2 {
			header = append(header, pairs[i]+": "+pairs[i+1])
		}
		return x.try(t, "POST", x.Public+"/v1/payments", sent, header...)
	}
	x.try(t, "POST", x.Public+"/v1/payments", body, x.buyer(t, "ada"), x.as(auth.RoleAdmin)).refused(t, "unsigned", 401, "BAD_SIGNATURE", "")
	pay(newPaymentSecret(), now, body, body).refused(t, "forged", 401, "BAD_SIGNATURE", "webhook-signature")
	pay(x.payments, now.Add(-time.Hour), body, body).refused(t, "stale", 401, "BAD_SIGNATURE", "webhook-timestamp")
	pay(x.payments, now.Add(time.Hour), body, body).refused(t, "early", 401, "BAD_SIGNATURE", "webhook-timestamp")
	pay(x.payments, now, body, strings.Replace(body, "pay_1", "pay_2", 1)).refused(t, "changed", 401, "BAD_SIGNATURE", "webhook-signature")
	for want, sent := range map[string]string{
		"amount": strings.Replace(body, "{", `{"amount":0,`, 1), "state": strings.Replace(body, "{", `{"state":"PAID",`, 1),
		"payment_id": strings.Replace(body, "{", `{"payment_id":"x",`, 1), "body": "<xml/>",
	} {
		pay(x.payments, now, sent, sent).refused(t, "member "+want, 400, "MALFORMED_BODY", want)
	}
	huge := body + strings.Repeat(" ", handler.MaxBody)
	pay(x.payments, now, huge, huge).refused(t, "huge", 413, "BODY_TOO_LARGE", "body")
	long := strings.Replace(body, "pay_1", strings.Repeat("p", 10_000), 1)
	pay(x.payments, now, long, long).refused(t, "a long id", 422, "INVALID_FIELD", "payment_id")
	stranger := strings.Replace(body, id, strange, 1)
	pay(x.payments, now, stranger, stranger).refused(t, "an order that is not there", 404, "ORDER_NOT_FOUND", "")
	check()
	for range 2 {
		if got := pay(x.payments, now, body, body); got.status != 200 || !strings.Contains(got.body, `"state":"PAID"`) {
			t.Errorf("the good callback: %s", got)
		}
	}
	if got := x.stock(t, demoSKU); got.Sold != 1 {
		t.Errorf("paid once: %+v", got)
	}
}

// The other two things that a node reads of others.
func TestOWASP10KeysAndMonitoring(t *testing.T) {
	trap, visits := canary(t)
	monitoring := httptest.NewServer(http.RedirectHandler(trap, http.StatusTemporaryRedirect))
	t.Cleanup(monitoring.Close)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jwks.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x64 := base64.RawURLEncoding.EncodeToString(public)
	write(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"` + x64 + `"}]}`)
	x := startTarget(t, "auth.jwksFile="+file, "doctor.prometheusURL="+monitoring.URL)
	claims := fmt.Sprintf(`{"sub":"ada","aud":"%s","exp":%d}`, devAudience, time.Now().Add(time.Hour).Unix())
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"k1"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	good := "Authorization: Bearer " + unsigned + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(unsigned)))
	pace := time.NewTicker(10 * time.Millisecond) // in all the tries take longer than a node leaves the file alone
	defer pace.Stop()
	for _, garbage := range []string{"", "\x00\xff", "<html>", `{"keys":[]}`, `{"keys":[{"kty":"oct","kid":"k1","k":"` + x64 + `"}]}`} {
		write(garbage)
		for range 25 {
			if got := x.try(t, "GET", x.Public+"/v1/orders", "", good); got.status != 200 {
				t.Fatalf("after %q in the file of keys: %s", garbage, got)
			}
			confused := "Authorization: Bearer " + forge(x64, `{"alg":"HS256","kid":"k1"}`, claims)
			x.try(t, "GET", x.Public+"/v1/orders", "", confused).refused(t, "a public key as secret", 401, "UNAUTHENTICATED", "")
			<-pace.C
		}
	}
	if got := runWith(t, nil, append(devArgs(filepath.Join(t.TempDir(), "x.db")), "--set", "auth.jwksFile="+file)...); got.code != exitConfig {
		t.Errorf("a start with garbage: got %+v", got)
	}
	got := x.try(t, "GET", x.Admin+"/admin/v1/doctor", "", x.as(auth.RoleViewer))
	if visits.Load() != 0 || !strings.Contains(got.body, "307 Temporary Redirect") {
		t.Errorf("the monitoring sent the node elsewhere %d times: %s", visits.Load(), got)
	}
}
