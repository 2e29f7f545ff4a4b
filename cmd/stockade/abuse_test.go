package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

// target is a real node that a test attacks, with an operator of each role and a secret to sign buyers' tokens with.
type target struct {
	banner
	tokens    auth.Config // signs buyers' tokens
	payments  string      // secret of the payment provider
	operators map[auth.Role]string
	client    *http.Client
}

// heard is an HTTP answer as an attacker sees it.
type heard struct {
	status int
	header http.Header
	body   string
}

func (a heard) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// refused holds that an answer is this problem, about this field if one is given.
func (a heard) refused(t *testing.T, what string, status int, code, field string) {
	t.Helper()
	var p struct{ Code, Field string }
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != status || p.Code != code || field != "" && p.Field != field {
		t.Errorf("%s: got %s, want %d %s of %q", what, a, status, code, field)
	}
}

func startTarget(t *testing.T, set ...string) *target {
	t.Helper()
	dir := t.TempDir()
	x := &target{
		tokens: auth.DefaultConfig(), payments: newPaymentSecret(), operators: map[auth.Role]string{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
	t.Cleanup(x.client.CloseIdleConnections)
	x.tokens.JWTSecrets, x.tokens.Audience = []string{newSecret()}, devAudience
	var entries []auth.AdminToken
	for _, role := range auth.Roles {
		token, entry, err := auth.NewAdminToken("the-"+string(role), role, time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		x.operators[role], entries = token, append(entries, entry)
	}
	file := filepath.Join(dir, "operators.yaml")
	if err := auth.WriteAdminTokens(file, entries); err != nil {
		t.Fatal(err)
	}
	x.banner, _ = startDev(t, filepath.Join(dir, "stockade.db"), append([]string{
		"auth.adminTokensFile=" + file, "auth.jwtSecrets=" + x.tokens.JWTSecrets[0], "router.paymentSecrets=" + x.payments,
		"limiter.outbox.slowPercent=0",
	}, set...)...)
	return x
}

// try sends a request with these header lines, "Name: value". Repeated names are sent twice.
func (x *target) try(t *testing.T, method, url, body string, header ...string) heard {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return heard{resp.StatusCode, resp.Header, string(text)}
}

// purchases is where units of the demo SKU are bought.
func (x *target) purchases() string { return x.Public + "/v1/skus/" + demoSKU + "/orders" }

// as is the header of a role's token.
func (x *target) as(role auth.Role) string { return "Authorization: Bearer " + x.operators[role] }

// operate makes an admin's request, which must succeed.
func (x *target) operate(t *testing.T, method, path, body string) string {
	t.Helper()
	got := x.try(t, method, x.Admin+path, body, x.as(auth.RoleAdmin), "X-Reason: a test")
	if got.status/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, got)
	}
	return got.body
}

// buyer is the header of a buyer's good token.
func (x *target) buyer(t *testing.T, name string) string {
	t.Helper()
	token, err := auth.SignToken(x.tokens, name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return "Authorization: Bearer " + token
}

// forge signs a JWT of any header and claims with any key.
func forge(key, header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// stock is what a SKU's truth and its shares hold: an attack that takes nothing leaves it as it was.
type stock struct{ Promised, Sold, Left, Pending int64 }

func (x *target) stock(t *testing.T, sku string) (s stock) {
	t.Helper()
	var books sale.Books
	var shares struct {
		Shares []struct{ Left, Pending int64 }
	}
	for path, into := range map[string]any{"/books": &books, "/shares": &shares} {
		if err := json.Unmarshal([]byte(x.operate(t, "GET", "/admin/v1/skus/"+sku+path, "")), into); err != nil {
			t.Fatal(err)
		}
	}
	s.Promised, s.Sold = books.Promised, books.Sold
	for _, share := range shares.Shares {
		s.Left, s.Pending = s.Left+share.Left, s.Pending+share.Pending
	}
	return s
}

// untouched returns a check that nothing was taken of the demo SKU since.
func (x *target) untouched(t *testing.T) func() {
	t.Helper()
	before := x.stock(t, demoSKU)
	return func() {
		t.Helper()
		if after := x.stock(t, demoSKU); after != before {
			t.Errorf("the stock was %+v and is %+v", before, after)
		}
	}
}

// figures are what the node says of itself.
func (x *target) figures(t *testing.T) (figures handler.NodeJSON) {
	t.Helper()
	if err := json.Unmarshal([]byte(x.operate(t, "GET", "/admin/v1/node", "")), &figures); err != nil {
		t.Fatal(err)
	}
	return figures
}

// results are the node's own counts of answers to purchases.
func (x *target) results(t *testing.T) map[string]int64 { t.Helper(); return x.figures(t).Results }

// inFlight is how many public requests are being answered.
func (x *target) inFlight(t *testing.T) int64 { t.Helper(); return x.figures(t).InFlight }

// members holds that a JSON object has exactly these members.
func members(t *testing.T, what, object string, want ...string) {
	t.Helper()
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &got); err != nil {
		t.Fatalf("%s: %v in %s", what, err, object)
	}
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%s has the members %v, want %v", what, names, want)
	}
}
