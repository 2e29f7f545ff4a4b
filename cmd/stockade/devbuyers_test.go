package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
)

// callAs sends a request with these header lines, "Name: value".
func callAs(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var printedToken = regexp.MustCompile(`(http://\S+) -H '(Authorization: Bearer [^']+)'`)

// The embedded mode prints a token that works, for the buyer of the command above it.
func TestDevPrintsABuyersToken(t *testing.T) {
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"))
	found := printedToken.FindStringSubmatch(b.Orders)
	buyer := regexp.MustCompile(`X-Buyer-Id: ([^']+)'`).FindStringSubmatch(b.Buy)
	if found == nil || buyer == nil {
		t.Fatalf("printed %+v", b)
	}
	id := buyOne(t, b.Public, buyer[1])
	if status, text := callAs(t, "GET", found[1], "", found[2]); status != 200 || !strings.Contains(text, id) {
		t.Errorf("got %d %s, want order %s", status, text, id)
	}
	if status, text := callAs(t, "GET", found[1], "", found[2]+"A"); status != 401 {
		t.Errorf("a changed token: %d %s", status, text)
	}
}

// What is configured stays: a node that only takes tokens takes no other word.
func TestDevKeepsConfiguredBuyers(t *testing.T) {
	secret := strings.Repeat("j", auth.MinSecret)
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"), "auth.buyers=jwt", "auth.jwtSecrets="+secret)
	if b.Orders != "" {
		t.Errorf("printed %s", b.Orders)
	}
	cfg := auth.DefaultConfig()
	cfg.JWTSecrets, cfg.Audience = []string{secret}, devAudience
	token, err := auth.SignToken(cfg, "ada", time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := callAs(t, "GET", b.Public+"/v1/orders", "", "Authorization: Bearer "+token); status != 200 {
		t.Errorf("with a token: %d %s", status, text)
	}
	if status, text := callAs(t, "GET", b.Public+"/v1/orders", "", "X-Buyer-Id: ada"); status != 401 {
		t.Errorf("with X-Buyer-Id alone: %d %s", status, text)
	}
}

// A buyer with a good token of their own gets nowhere near the order of another one.
func TestATokenOpensNoOtherBuyersOrder(t *testing.T) {
	secret := strings.Repeat("j", auth.MinSecret)
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"), "auth.jwtSecrets="+secret)
	cfg := auth.DefaultConfig()
	cfg.JWTSecrets, cfg.Audience = []string{secret}, devAudience
	as := func(buyer string) string {
		token, err := auth.SignToken(cfg, buyer, time.Now(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return "Authorization: Bearer " + token
	}
	order := b.Public + "/v1/orders/" + buyOne(t, b.Public, "ada")
	for _, tc := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"GET", "?sku=" + demoSKU, ""}, {"GET", "/events", ""}, {"POST", "/cancel", "{}"},
	} {
		status, text := callAs(t, tc.method, order+tc.path, tc.body, as("eve"), "X-Buyer-Id: ada", "Content-Type: application/json")
		if status != 404 || !strings.Contains(text, "ORDER_NOT_FOUND") || strings.Contains(text, "ada") {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, text)
		}
	}
	if status, text := callAs(t, "GET", order, "", as("ada")); status != 200 || !strings.Contains(text, `"state":"CREATED"`) {
		t.Errorf("ada's own, which nobody cancelled: %d %s", status, text)
	}
	if status, text := callAs(t, "POST", order+"/cancel", "{}", as("ada"), "Content-Type: application/json"); status != 200 {
		t.Errorf("ada cancels: %d %s", status, text)
	}
}

// With the real limiter: neither an invented address nor an invented buyer beside a token is a fresh bucket.
func TestInventedNamesBuyNoFreshBucket(t *testing.T) {
	secret := strings.Repeat("j", auth.MinSecret)
	const burst = 5
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"), "auth.jwtSecrets="+secret, "router.exemptAddresses=203.0.113.0/24",
		"auth.gateways=203.0.113.0/24",
		"limiter.addressPerSecond=1", fmt.Sprintf("limiter.addressBurst=%d", burst))
	begun := time.Now()
	passed, limited := 0, 0
	for i := range 40 {
		status, text := callAs(t, "GET", b.Public+"/v1/skus/"+demoSKU, "", fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i),
			fmt.Sprintf("X-Real-Ip: 198.51.100.%d", i))
		switch {
		case status == 200:
			passed++
		case status == 429 && strings.Contains(text, "RATE_LIMITED"):
			limited++
		default:
			t.Errorf("got %d %s", status, text)
		}
	}
	if most := burst + 1 + int(time.Since(begun)/time.Second); passed > most || limited == 0 {
		t.Errorf("%d of 40 passed, at most %d may", passed, most)
	}

	b, _ = startDev(t, filepath.Join(t.TempDir(), "stockade.db"), "auth.jwtSecrets="+secret, "limiter.buyerPerSecond=1",
		fmt.Sprintf("limiter.buyerBurst=%d", burst))
	cfg := auth.DefaultConfig()
	cfg.JWTSecrets, cfg.Audience = []string{secret}, devAudience
	token, err := auth.SignToken(cfg, "ada", time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	begun, passed = time.Now(), 0
	for i := range 40 {
		status, _ := callAs(t, "POST", b.Public+"/v1/skus/"+demoSKU+"/orders", `{"quantity":1}`, "Authorization: Bearer "+token,
			fmt.Sprintf("X-Buyer-Id: ada-%d", i), "Content-Type: application/json", fmt.Sprintf("Idempotency-Key: k%d", i))
		if status != 429 {
			passed++
		}
	}
	if most := burst + 1 + int(time.Since(begun)/time.Second); passed > most {
		t.Errorf("%d of 40 purchases passed, at most %d may", passed, most)
	}
}
