package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
)

const (
	newTokenSecret = "the newest secret, 32 bytes or longer"
	oldTokenSecret = "an older secret of 32 bytes or longer"
)

func testTokens(secrets ...string) *auth.PurchaseTokens {
	return auth.NewPurchaseTokens(secrets, time.Minute, func() time.Time { return testNow })
}

// tokenFrom issues a token for the SKU demo and buyer u1, or others.
func tokenFrom(t testing.TB, tokens *auth.PurchaseTokens, sku, buyer string) (header string, order sale.OrderID) {
	t.Helper()
	text, token, err := tokens.Issue(sku, buyer)
	if err != nil {
		t.Fatal(err)
	}
	return handler.TokenHeader + ": " + text, token.Order
}

func (n *node) token(t testing.TB, sku, body string, header ...string) reply {
	t.Helper()
	return send(t, "POST", n.publicURL()+"/v1/skus/"+sku+"/token", body, header...)
}

// A token that was issued buys the order that it names, and is used for no request but of its buyer and SKU.
func TestAPurchaseWithAToken(t *testing.T) {
	n := startNode(t, nil)
	got := n.token(t, "demo", "", "X-Buyer-Id: u1")
	var issued handler.TokenJSON
	if err := json.Unmarshal([]byte(got.body), &issued); err != nil || got.status != 200 {
		t.Fatalf("issued: %v in %d %s", err, got.status, got.body)
	}
	checkHeader(t, got, "Cache-Control", "no-store")
	checkHeader(t, got, "RateLimit-Limit", "5")
	life := issued.ExpiresAt.Sub(testNow)
	if issued.SKU != "demo" || life < time.Minute || life > time.Minute+time.Second {
		t.Errorf("issued %+v", issued)
	}
	for _, tt := range []struct {
		buyer  string
		header []string
		status int
		code   string
		order  sale.OrderID
	}{
		{"u1", []string{"Purchase-Token: " + issued.Token}, 409, "SOLD_OUT", issued.OrderID}, // the fake's verdict
		{"u2", []string{"Purchase-Token: " + issued.Token}, 403, "PURCHASE_TOKEN_REFUSED", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: " + issued.Token + "A"}, 403, "PURCHASE_TOKEN_REFUSED", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: "}, 403, "PURCHASE_TOKEN_REFUSED", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: " + strings.Repeat("a", 8000)}, 403, "PURCHASE_TOKEN_REFUSED", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: a", "Purchase-Token: b"}, 400, "BAD_REQUEST", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: " + issued.Token, "Idempotency-Key: k"}, 400, "BAD_REQUEST", sale.OrderID{}},
		{"u1", []string{"Purchase-Token: forged", "Idempotency-Key: k"}, 400, "BAD_REQUEST", sale.OrderID{}},
	} {
		n.shop.set(func() { n.shop.bought = nil })
		got := send(t, "POST", n.publicURL()+"/v1/skus/demo/orders", `{"quantity":1}`, append(tt.header, "X-Buyer-Id: "+tt.buyer)...)
		if problem := readProblem(t, got); got.status != tt.status || problem.Code != tt.code {
			t.Errorf("%s with %.80q: %d %s", tt.buyer, tt.header, got.status, got.body)
		}
		n.shop.set(func() {
			reached := len(n.shop.bought) == 1 && n.shop.bought[0].Order == tt.order && !n.shop.bought[0].Expired
			if reached != (tt.order != sale.OrderID{}) || !reached && len(n.shop.bought) > 0 {
				t.Errorf("%s with %.80q reached the service as %+v", tt.buyer, tt.header, n.shop.bought)
			}
		})
	}
	other, _ := tokenFrom(t, testTokens(newTokenSecret), "other", "u1")
	if got := n.buy(t, `{"quantity":1}`, other); got.status != 403 || readProblem(t, got).Field != "Purchase-Token" {
		t.Errorf("a token of another SKU: %d %s", got.status, got.body)
	}
}

// While a secret is rotated, nodes take tokens of either; one that is gone takes nobody in any more.
func TestTokenSecretsAreRotated(t *testing.T) {
	n := startNode(t, nil)
	for secret, status := range map[string]int{newTokenSecret: 409, oldTokenSecret: 403} {
		header, _ := tokenFrom(t, testTokens(secret), "demo", "u1")
		if got := n.buy(t, `{"quantity":1}`, header); got.status != status {
			t.Errorf("signed with %q: %d %s, want %d", secret, got.status, got.body, status)
		}
	}
}

// An expired token reaches the service, which knows whether an order came of it.
func TestAnExpiredTokenIsLookedUp(t *testing.T) {
	n := startNode(t, nil)
	old := auth.NewPurchaseTokens([]string{newTokenSecret}, time.Minute, func() time.Time { return testNow.Add(-time.Hour) })
	header, order := tokenFrom(t, old, "demo", "u1")
	n.shop.set(func() { n.shop.err = sale.ErrPurchaseTokenExpired })
	got := n.buy(t, `{"quantity":1}`, header)
	if problem := readProblem(t, got); got.status != 403 || problem.Code != "PURCHASE_TOKEN_EXPIRED" || problem.Field != "Purchase-Token" {
		t.Errorf("no order: %d %s", got.status, got.body)
	}
	n.shop.set(func() {
		n.shop.err = nil
		n.shop.result = sale.Result{Code: sale.Accepted, Replayed: true, Order: sale.Order{ID: order, State: sale.OrderCreated}}
	})
	got = n.buy(t, `{"quantity":1}`, header)
	if got.status != 202 || !strings.Contains(got.body, order.String()) {
		t.Errorf("with an order: %d %s", got.status, got.body)
	}
	checkHeader(t, got, "Idempotent-Replayed", "true")
	n.shop.set(func() {
		for _, req := range n.shop.bought {
			if req.Order != order || !req.Expired {
				t.Errorf("the service was asked for %+v", req)
			}
		}
	})
	for err, want := range map[error]string{
		sale.ErrKeyReused: "422 KEY_REUSED Purchase-Token", sale.ErrPurchaseTokenRequired: "403 PURCHASE_TOKEN_REQUIRED Purchase-Token",
	} {
		n.shop.set(func() { n.shop.err = err })
		got := n.buy(t, `{"quantity":1}`, header)
		if problem := readProblem(t, got); fmt.Sprint(got.status, " ", problem.Code, " ", problem.Field) != want {
			t.Errorf("%v: %d %s, want %s", err, got.status, got.body, want)
		}
	}
}

// No token is issued to whom the sale would refuse, and each request for one pays.
func TestTokensAreNotIssued(t *testing.T) {
	n := startNode(t, nil)
	opens := testNow.Add(time.Hour)
	for _, tt := range []struct {
		name, sku, body string
		header          []string
		refused         sale.Result
		err             error
		want            string
	}{
		{"no buyer", "demo", "", nil, sale.Result{}, nil, "401 BUYER_MISSING"},
		{"no such SKU", "none", "", []string{"X-Buyer-Id: u1"}, sale.Result{}, nil, "404 SKU_NOT_FOUND"},
		{"bad SKU", "de%20mo", "", []string{"X-Buyer-Id: u1"}, sale.Result{}, nil, "400 BAD_REQUEST"},
		{"a body", "demo", `{"quantity":1}`, []string{"X-Buyer-Id: u1"}, sale.Result{}, nil, "400 MALFORMED_BODY"},
		{
			"not open", "demo", "{}",
			[]string{"X-Buyer-Id: u1"},
			sale.Result{Code: sale.NotOnSale, Reason: sale.ReasonNotStarted, SKU: sale.SKU{OpensAt: opens}},
			nil, "409 NOT_ON_SALE",
		},
		{"paused", "demo", "", []string{"X-Buyer-Id: u1"}, sale.Result{Code: sale.NotOnSale, Reason: sale.ReasonPaused}, nil, "409 NOT_ON_SALE"},
		{"no database", "demo", "", []string{"X-Buyer-Id: u1"}, sale.Result{Code: sale.Busy, Reason: sale.ReasonDependency}, nil, "503 BUSY"},
		{"unforeseen", "demo", "", []string{"X-Buyer-Id: u1"}, sale.Result{}, errors.New("unforeseen"), "500 INTERNAL"},
	} {
		n.shop.set(func() { n.shop.noToken, n.shop.err = tt.refused, tt.err })
		got := n.token(t, tt.sku, tt.body, tt.header...)
		if problem := readProblem(t, got); fmt.Sprint(got.status, " ", problem.Code) != tt.want || strings.Contains(got.body, `"token"`) {
			t.Errorf("%s: %d %s, want %s", tt.name, got.status, got.body, tt.want)
		}
		if tt.name == "not open" && !strings.Contains(got.body, `"opens_at":"2026-01-02T04:04:05.678Z"`) {
			t.Errorf("the refusal does not say when the sale opens: %s", got.body)
		}
	}
	n.shop.set(func() { n.shop.noToken, n.shop.err = sale.Result{}, nil })
	n.buckets.set(func() {
		n.buckets.noBuyers, n.buckets.buyers, n.buckets.won = true, nil, sale.DeriveOrderID("demo", "u1", "k1")
	})
	if got := n.token(t, "demo", "", "X-Buyer-Id: u1", "Idempotency-Key: k1"); got.status != 429 {
		t.Errorf("over the buyer's rate, with a winner's key: %d %s", got.status, got.body)
	}
	n.buckets.set(func() {
		if !slices.Equal(n.buckets.buyers, []string{"u1"}) {
			t.Errorf("charged %v", n.buckets.buyers)
		}
	})
}

// A winner who asks again with the token does not pay; a forged token of the same order does.
func TestAWinnersTokenIsNotCharged(t *testing.T) {
	n := startNode(t, nil)
	header, order := tokenFrom(t, testTokens(newTokenSecret), "demo", "u1")
	n.buckets.set(func() { n.buckets.won, n.buckets.noBuyers = order, true })
	if got := n.buy(t, `{"quantity":1}`, header); got.status != 409 || n.shop.calls.Load() != 1 {
		t.Errorf("a winner's retry: %d %s", got.status, got.body)
	}
	another, _ := tokenFrom(t, testTokens(newTokenSecret), "demo", "u1")
	for _, tt := range []string{another, header + "A", header[:len(header)-4], "Purchase-Token: " + order.String()} {
		if got := n.buy(t, `{"quantity":1}`, tt); got.status != 429 {
			t.Errorf("%s: %d", tt, got.status)
		}
	}
	if got := n.buy(t, `{"quantity":1}`, header, "X-Buyer-Id: u2"); got.status == 409 {
		t.Errorf("two buyers: %d %s", got.status, got.body)
	}
}

// A node without a secret issues no tokens, and takes none.
func TestTokensAreDisabledWithoutASecret(t *testing.T) {
	engine, prepare := refusedPurchase(t)
	for _, path := range []string{"/v1/skus/demo/orders", "/v1/skus/demo/token"} {
		c := prepare()
		c.Request.Header.SetRequestURI(path)
		c.Request.Header.Del("Idempotency-Key")
		c.Request.Header.Set("Purchase-Token", "a.b.c")
		engine.ServeHTTP(context.Background(), c)
		if body := string(c.Response.Body()); c.Response.StatusCode() != 404 || !strings.Contains(body, `"code":"PURCHASE_TOKENS_DISABLED"`) {
			t.Errorf("%s: %d %s", path, c.Response.StatusCode(), body)
		}
	}
}
