//go:build services

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/cmd/stockade/proctest"
)

// askToken asks node i for a purchase token; status is 0 when there was no answer.
func (p *pair) askToken(i int, sku, buyer string) (token handler.TokenJSON, code string, status int) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.node(i).Public+"/v1/skus/"+sku+"/token", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-Buyer-Id", buyer)
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Errorf("token: %v", err)
		return token, "", 0
	}
	defer resp.Body.Close()
	var answer struct {
		handler.TokenJSON
		Code string `json:"code"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		p.t.Errorf("token: %s: %v", resp.Status, err)
	}
	return answer.TokenJSON, answer.Code, resp.StatusCode
}

// mustToken is a token that has to be issued.
func (p *pair) mustToken(i int, sku, buyer string) handler.TokenJSON {
	p.t.Helper()
	token, code, status := p.askToken(i, sku, buyer)
	if status != http.StatusOK || token.Token == "" || token.SKU != sku {
		p.t.Fatalf("token of %s for %s: %d %s %+v", sku, buyer, status, code, token)
	}
	return token
}

// tokened is a purchase with a token in place of a key.
func tokened(sku, buyer, token string) request {
	return request{sku, buyer, byToken + token, 1}
}

// A token is sent a hundred times at the same time to two nodes: one order, the one that it names. Nobody else can use
// it, nobody without one is served, and it outlives the node that issued it.
func TestATokenIsOneOrder(t *testing.T) {
	p := startPair(t)
	sku := p.create(100, 2, "--purchase-token", "required", "--open")
	token := p.mustToken(0, sku, "ada")
	r := tokened(sku, "ada", token.Token)
	answers := make([]answer, 100)
	atOnce(len(answers), func(i int) { answers[i] = p.ask(i%2, r) })
	first := 0
	for i, a := range answers {
		switch {
		case a.Code == accepted && a.OrderID == token.OrderID.String():
			if !a.replayed {
				first++
			}
		case a.Code != busy && a.Code != retry:
			t.Errorf("request %d with the token: %v", i, a)
		}
	}
	if first > 1 {
		t.Errorf("%d requests with one token were each told that the order is theirs", first)
	}
	for i := range p.nodes {
		if a := p.buy(r, manyTries, always(i)); a.Code != accepted || !a.replayed || a.OrderID != token.OrderID.String() {
			t.Errorf("node %d, asked again: %v", i, a)
		}
		p.refusesTokens(i, sku, token)
	}
	if sold := p.audit(sku); sold != 1 {
		t.Errorf("%d units sold to one token", sold)
	}

	p.node(0).StopWell()
	p.replace(0, startNode(t, "c"))
	if a := p.buy(r, manyTries, always(0)); a.Code != accepted || !a.replayed || a.OrderID != token.OrderID.String() {
		t.Errorf("after a restart: %v", a)
	}
	late := p.mustToken(1, sku, "bob")
	if a := p.buy(tokened(sku, "bob", late.Token), manyTries, always(0)); a.Code != accepted || a.OrderID != late.OrderID.String() {
		t.Errorf("a token of the other node: %v", a)
	}
	if sold := p.audit(sku); sold != 2 {
		t.Errorf("%d units sold to two tokens", sold)
	}
}

// refusesTokens tries a token where it is not good.
func (p *pair) refusesTokens(i int, sku string, token handler.TokenJSON) {
	p.t.Helper()
	two := tokened(sku, "ada", token.Token)
	two.quantity = 2
	other := p.create(10, 2, "--open")
	for what, tt := range map[string]struct {
		r      request
		status int
		code   string
	}{
		"another quantity": {two, 422, "KEY_REUSED"},
		"another buyer":    {tokened(sku, "eve", token.Token), 403, "PURCHASE_TOKEN_REFUSED"},
		"another SKU":      {tokened(other, "ada", token.Token), 403, "PURCHASE_TOKEN_REFUSED"},
		"cut":              {tokened(sku, "ada", token.Token[:len(token.Token)-2]), 403, "PURCHASE_TOKEN_REFUSED"},
		"no token":         {request{sku, "eve", "k", 1}, 403, "PURCHASE_TOKEN_REQUIRED"},
		"nothing":          {request{sku, "eve", "", 1}, 403, "PURCHASE_TOKEN_REQUIRED"},
	} {
		if a := p.ask(i, tt.r); a.Status != tt.status || a.Code != tt.code {
			p.t.Errorf("node %d, %s: %v, want %d %s", i, what, a, tt.status, tt.code)
		}
	}
}

// Tokens come with the opening and not before it; an expired one finds its order, and buys nothing otherwise.
func TestTokensHaveTheirTime(t *testing.T) {
	p := startPair(t, "auth.purchaseTokenMs=4000")
	opens := time.Now().Add(3 * time.Second).UTC().Truncate(time.Millisecond)
	sku := p.create(10, 2, "--opens-at", opens.Format(time.RFC3339Nano), "--open")
	if _, code, status := p.askToken(0, sku, "ada"); time.Now().Before(opens) && (status != 409 || code != notOnSale) {
		t.Errorf("before the opening: %d %s", status, code)
	}
	var token handler.TokenJSON
	for i := range p.nodes {
		eventually(t, settleBound, "tokens are issued", func() bool {
			got, code, status := p.askToken(i, sku, "ada")
			at := time.Now()
			if status == http.StatusOK && at.Before(opens) {
				t.Errorf("node %d issued a token %v before the opening", i, opens.Sub(at))
			}
			token = got
			return status == http.StatusOK || code != notOnSale
		})
	}
	unused := p.mustToken(1, sku, "bob")
	if a := p.buy(tokened(sku, "ada", token.Token), manyTries, always(0)); a.Code != accepted {
		t.Fatalf("a fresh token: %v", a)
	}
	eventually(t, settleBound, "the tokens expire", func() bool {
		return time.Now().After(token.ExpiresAt) && time.Now().After(unused.ExpiresAt)
	})
	for i := range p.nodes {
		a := p.buy(tokened(sku, "ada", token.Token), manyTries, always(i))
		if a.Code != accepted || !a.replayed || a.OrderID != token.OrderID.String() {
			t.Errorf("node %d, expired with an order: %v", i, a)
		}
		if a := p.ask(i, tokened(sku, "bob", unused.Token)); a.Status != 403 || a.Code != "PURCHASE_TOKEN_EXPIRED" {
			t.Errorf("node %d, expired without an order: %v", i, a)
		}
	}
	p.node(0).CLI("sku", "pause", sku)
	for i := range p.nodes {
		eventually(t, flagBound, "no tokens are issued", func() bool {
			_, code, _ := p.askToken(i, sku, "ada")
			return code == notOnSale
		})
		if a := p.buy(tokened(sku, "ada", token.Token), manyTries, always(i)); a.Code != accepted || a.OrderID != token.OrderID.String() {
			t.Errorf("node %d, paused: %v", i, a)
		}
	}
	if sold := p.audit(sku); sold != 1 {
		t.Errorf("%d units sold, want 1", sold)
	}
}

// A node that has the new secret beside the old one takes tokens of a node that has the old one only.
func TestTokenSecretsRotate(t *testing.T) {
	fresh := "auth.purchaseTokenSecrets=" + strings.Repeat("n", 40) + "," + proctest.PurchaseSecret
	p := startUnlike(t, nil, []string{fresh})
	sku := p.create(10, 2, "--open")
	for i, want := range [2]string{accepted, "PURCHASE_TOKEN_REFUSED"} {
		buyer := fmt.Sprintf("b-%d", i)
		token := p.mustToken(i, sku, buyer)
		if a := p.buy(tokened(sku, buyer, token.Token), manyTries, always(1-i)); a.Code != want {
			t.Errorf("a token of node %d at the other one: %v, want %s", i, a, want)
		}
		if a := p.buy(tokened(sku, buyer, token.Token), manyTries, always(i)); a.Code != accepted {
			t.Errorf("a token of node %d there: %v", i, a)
		}
	}
	if sold := p.audit(sku); sold != 2 {
		t.Errorf("%d units sold to two tokens", sold)
	}
}
