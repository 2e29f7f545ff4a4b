package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

// ask makes a request in a buyer's name and returns what came.
func ask(t *testing.T, method, url, buyer, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Buyer-Id", buyer)
	req.Header.Set("Content-Type", "application/json")
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

// buyOne buys a unit of the demo SKU and waits until its order row is there.
func buyOne(t *testing.T, public, buyer string) (id string) {
	t.Helper()
	status, text := ask(t, "POST", public+"/v1/skus/"+demoSKU+"/orders", buyer, `{"quantity":1}`)
	var got struct {
		ID string `json:"order_id"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 202 {
		t.Fatalf("%s got %d %s", buyer, status, text)
	}
	for deadline := time.Now().Add(devTimeout); ; time.Sleep(5 * time.Millisecond) {
		_, text := ask(t, "GET", public+"/v1/orders/"+got.ID, buyer, "")
		if strings.Contains(text, `"state":"CREATED"`) {
			return got.ID
		}
		if time.Now().After(deadline) {
			t.Fatalf("the order is still %s", text)
		}
	}
}

// follow reads an order's events to their end.
func follow(t *testing.T, public, id, buyer string) (states []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", public+"/v1/orders/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Buyer-Id", buyer)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			data, ok = strings.CutPrefix(lines.Text(), "data:")
		}
		var o sale.Order
		switch {
		case !ok:
		case strings.Contains(data, `"reason":"final"`):
			return append(states, "end")
		case json.Unmarshal([]byte(data), &o) == nil && o.State != "":
			states = append(states, stateOf(o))
		}
	}
	return states
}

// An embedded node takes payments signed with the secret of its banner, and cancels; events tell and end.
func TestPayAndCancelInDev(t *testing.T) {
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"))
	words := strings.Fields(b.Pay)
	paid, cancelled := buyOne(t, b.Public, "ann"), buyOne(t, b.Public, "bob")
	words[3] = paid // stockade order pay ORDER
	events := make(chan []string, 2)
	go func() { events <- follow(t, b.Public, paid, "ann") }()
	for range 2 {
		if got := runWith(t, nil, words[1:]...); got.code != exitOK || !strings.Contains(got.stdout, "PAID") {
			t.Fatalf("%v: got %+v", words, got)
		}
	}
	if states := <-events; states[len(states)-1] != "end" || states[len(states)-2] != "PAID" {
		t.Errorf("events of the paid order: %v", states)
	}
	if status, text := ask(t, "POST", b.Public+"/v1/orders/"+paid+"/cancel", "ann", ""); status != 409 || !strings.Contains(text, "ORDER_PAID") {
		t.Errorf("cancel of the paid order: %d %s", status, text)
	}
	if status, text := ask(t, "POST", b.Public+"/v1/orders/"+cancelled+"/cancel", "ann", ""); status != 404 || !strings.Contains(text, "ORDER_NOT_FOUND") {
		t.Errorf("cancel of somebody else's order: %d %s", status, text)
	}
	go func() { events <- follow(t, b.Public, cancelled, "bob") }()
	if got := runWith(t, nil, "order", "cancel", cancelled, "--admin", b.Admin, "--token", b.Token); got.code != exitOK || !strings.Contains(got.stdout, "CLOSED (CANCELLED)") {
		t.Errorf("cancel by an operator: got %+v", got)
	}
	if states := <-events; states[len(states)-1] != "end" || states[len(states)-2] != "CLOSED (CANCELLED)" {
		t.Errorf("events of the cancelled order: %v", states)
	}
	words[3] = cancelled
	if got := runWith(t, nil, words[1:]...); got.code != exitRefused || !strings.Contains(got.stderr, "REFUND_REQUIRED (CANCELLED)") {
		t.Errorf("a late payment: got %+v", got)
	}
	if got := runWith(t, nil, "order", "show", cancelled, "--admin", b.Admin, "--token", b.Token); got.code != exitOK || !strings.Contains(got.stdout, "bob") {
		t.Errorf("an operator's look: got %+v", got)
	}
	if got := runWith(t, nil, "dead", "list", "--admin", b.Admin, "--token", b.Token, "-o", "json"); got.code != exitOK || strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("dead letters: got %+v", got)
	}
	for deadline := time.Now().Add(devTimeout); ; time.Sleep(5 * time.Millisecond) {
		got := runWith(t, nil, "sku", "show", demoSKU, "--admin", b.Admin, "--token", b.Token, "--shares", "-o", "json")
		var shares []struct{ Left int64 }
		left := int64(0)
		if json.Unmarshal([]byte(got.stdout), &shares) == nil {
			for _, s := range shares {
				left += s.Left
			}
		}
		if left == demoUnits-1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d units are left in the shares: %+v", left, got)
		}
	}
}
