package router

import (
	"net"
	"strings"
	"testing"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

func TestRequestID(t *testing.T) {
	n := startNode(t, nil)
	for _, good := range []string{"a", "A.b_c-9", strings.Repeat("x", 64)} {
		got := send(t, "GET", n.publicURL()+"/v1/skus/demo", "", "X-Request-Id: "+good)
		checkHeader(t, got, "X-Request-Id", good)
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "a b", `a"b`, "é", strings.Repeat("x", 65)} {
		got := send(t, "GET", n.publicURL()+"/v1/skus/demo", "", "X-Request-Id: "+bad)
		id := got.header.Get("X-Request-Id")
		if len(id) != 32 || seen[id] {
			t.Errorf("for %q: %q is no new id", bad, id)
		}
		seen[id] = true
	}
}

func TestPanicIsAnsweredAndLoggedOnce(t *testing.T) {
	n := startNode(t, nil)
	n.shop.set(func() { n.shop.panics = true })
	got := n.buy(t, `{"quantity":1}`)
	if p := readProblem(t, got); got.status != 500 || p.Code != "INTERNAL" || strings.Contains(got.body, "boom") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	logged := n.log.lines("level=ERROR")
	if len(logged) != 1 || !strings.Contains(logged[0], "boom") || !strings.Contains(logged[0], "stack=") ||
		!strings.Contains(logged[0], "request_id=r1") {
		t.Errorf("logged %q", logged)
	}
}

func TestRefusalsAreSampledInTheLog(t *testing.T) {
	n := startNode(t, func(c *Config) { c.LogRefusalsEvery = 10 })
	for range 25 {
		n.buy(t, `{"quantity":1}`)
	}
	if lines := n.log.lines("code=SOLD_OUT"); len(lines) != 3 || !strings.Contains(lines[0], "one_in=10") {
		t.Errorf("25 refusals left %d lines: %q", len(lines), lines)
	}
	n.shop.set(func() {
		n.shop.result = sale.Result{Code: sale.Accepted, Order: sale.Order{ID: someID, State: sale.OrderQueued}}
	})
	for range 5 {
		n.buy(t, `{"quantity":1}`)
	}
	lines := n.log.lines("status=202")
	if len(lines) != 5 || !strings.Contains(lines[0], "route=/v1/skus/:sku/orders") || !strings.Contains(lines[0], "code=ACCEPTED") {
		t.Errorf("5 orders left %d lines: %q", len(lines), lines)
	}
	if buyers := n.log.lines("u1"); len(buyers) != 0 {
		t.Errorf("the log names a buyer: %q", buyers)
	}
}

func TestHealth(t *testing.T) {
	n := startNode(t, nil)
	for _, tc := range []struct {
		ready  handler.Readiness
		status int
		body   string
	}{
		{handler.Readiness{Ready: true}, 200, `{"ready":true}`},
		{handler.Readiness{Ready: true, Degraded: []string{"redis"}}, 200, `{"ready":true,"degraded":["redis"]}`},
		{handler.Readiness{Reasons: []string{"stopping"}}, 503, `{"ready":false,"reasons":["stopping"]}`},
	} {
		n.shop.set(func() { n.shop.ready = tc.ready })
		for _, at := range []string{n.publicURL(), n.adminURL()} {
			if got := send(t, "GET", at+"/readyz", ""); got.status != tc.status || got.body != tc.body {
				t.Errorf("got %d %s, want %d %s", got.status, got.body, tc.status, tc.body)
			}
			if got := send(t, "GET", at+"/livez", ""); got.status != 200 {
				t.Errorf("livez: %d", got.status)
			}
		}
	}
}

func TestCORSIsOffUnlessOriginsAreConfigured(t *testing.T) {
	preflight := func(n *node, origin string) reply {
		return send(t, "OPTIONS", n.publicURL()+"/v1/skus/demo/orders", "",
			"Origin: "+origin, "Access-Control-Request-Method: POST")
	}
	off := startNode(t, nil)
	if got := preflight(off, "https://shop.example"); got.status != 405 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("off: %d %v", got.status, got.header)
	}
	on := startNode(t, func(c *Config) { c.CORSOrigins = []string{"https://shop.example"} })
	got := preflight(on, "https://shop.example")
	if got.status != 204 {
		t.Errorf("preflight: %d", got.status)
	}
	checkHeader(t, got, "Access-Control-Allow-Origin", "https://shop.example")
	if got := preflight(on, "https://evil.example"); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign origin: %d %v", got.status, got.header)
	}
	checkHeader(t, on.buy(t, `{"quantity":1}`, "Origin: https://shop.example"), "Access-Control-Allow-Origin", "https://shop.example")
	if got := send(t, "GET", on.adminURL()+"/admin/v1/skus/demo", "", "Origin: https://shop.example"); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("the admin API is open to pages")
	}
}

func TestOtherOriginsMayNotCallTheAdminAPI(t *testing.T) {
	n := startNode(t, nil)
	url := n.adminURL() + "/admin/v1/skus/demo/close"
	for _, origin := range []string{"https://evil.example", "null", "http://127.0.0.1:1"} {
		got := send(t, "POST", url, "", "Origin: "+origin)
		if p := readProblem(t, got); got.status != 403 || p.Code != "CROSS_ORIGIN" || p.Field != "Origin" {
			t.Errorf("%s: %d %s", origin, got.status, got.body)
		}
	}
	checkUntouched(t, n)
	if got := send(t, "POST", url, "", "Origin: "+n.adminURL()); got.status != 200 {
		t.Errorf("the listener's own origin: %d %s", got.status, got.body)
	}
}

func TestMistakenMethodsLearnTheRightOnes(t *testing.T) {
	n := startNode(t, nil)
	for path, want := range map[string]string{"/v1/skus/demo": "GET", "/v1/skus/demo/orders": "POST"} {
		got := send(t, "DELETE", n.publicURL()+path, "")
		if got.status != 405 {
			t.Errorf("%s: %d", path, got.status)
		}
		checkHeader(t, got, "Allow", want)
	}
	checkHeader(t, send(t, "DELETE", n.adminURL()+"/admin/v1/skus", ""), "Allow", "GET, POST")
}

func TestABusyAddressIsNamedWithItsSetting(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, setting := range []string{"public", "admin"} {
		cfg := DefaultConfig()
		cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
		if setting == "public" {
			cfg.Public = taken.Addr().String()
		} else {
			cfg.Admin = taken.Addr().String()
		}
		_, err := open(cfg, Parts{})
		if err == nil || !strings.HasPrefix(err.Error(), setting+": ") || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:0": true, "127.1.2.3:8081": true, "[::1]:8081": true, "localhost:8081": true,
		":8081": false, "0.0.0.0:8081": false, "[::]:8081": false, "10.0.0.1:8081": false, "shop.example:8081": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, breaks := range map[string]func(*Config){
		"public":            func(c *Config) { c.Public = "8080" },
		"admin":             func(c *Config) { c.Admin = "127.0.0.1:99999" },
		"trustedProxies":    func(c *Config) { c.TrustedProxies = []string{"10.0.0.0/33"} },
		"exemptAddresses":   func(c *Config) { c.ExemptAddresses = []string{"localhost"} },
		"corsOrigins":       func(c *Config) { c.CORSOrigins = []string{"*"} },
		"readTimeoutMs":     func(c *Config) { c.ReadTimeoutMs = 0 },
		"writeTimeoutMs":    func(c *Config) { c.WriteTimeoutMs = -1 },
		"idleTimeoutMs":     func(c *Config) { c.IdleTimeoutMs = 0 },
		"drainTimeoutMs":    func(c *Config) { c.DrainTimeoutMs = 0 },
		"maxStreams":        func(c *Config) { c.MaxStreams = -1 },
		"streamPollMs":      func(c *Config) { c.StreamPollMs = 0 },
		"streamHeartbeatMs": func(c *Config) { c.StreamHeartbeatMs = 0 },
		"streamMaxAgeMs":    func(c *Config) { c.StreamMaxAgeMs = 0 },
		"logRefusalsEvery":  func(c *Config) { c.LogRefusalsEvery = 0 },
	} {
		cfg := DefaultConfig()
		breaks(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
