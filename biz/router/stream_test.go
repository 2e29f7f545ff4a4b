package router

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

type event struct{ id, kind, data string }

// follow opens an event stream; its events come out of the channel, which closes with the stream.
func follow(t *testing.T, n *node, id sale.OrderID, header ...string) (*http.Response, <-chan event) {
	t.Helper()
	req, err := http.NewRequest("GET", n.publicURL()+"/v1/orders/"+id.String()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Buyer-Id", "u1")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	events := make(chan event, 100)
	go func() {
		defer close(events)
		var e event
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if value != "" {
					e.kind = "comment"
				}
				if e.kind != "" {
					events <- e
				}
				e = event{}
			}
		}
	}()
	return resp, events
}

// next waits for the next event that is no comment.
func next(t *testing.T, events <-chan event) event {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatal("the stream ended")
			}
			if e.kind != "comment" {
				return e
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no event came")
		}
	}
}

func closed(t *testing.T, events <-chan event) {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if e.kind != "comment" {
				t.Fatalf("after the end came %+v", e)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the stream does not end")
		}
	}
}

func quick(c *Config) { c.StreamPollMs, c.StreamHeartbeatMs = 10, 20 }

func (n *node) put(o sale.Order) {
	n.shop.set(func() { n.shop.orders[o.ID] = o })
}

func orderOf(state sale.OrderState) sale.Order {
	return sale.Order{
		ID: someID, SKU: "demo", Buyer: "u1", Quantity: 1, State: state,
		AcceptedAt: testNow, ExpiresAt: testNow.Add(15 * time.Minute),
	}
}

func TestStreamFollowsAnOrderToItsEnd(t *testing.T) {
	n := startNode(t, quick)
	n.put(orderOf(sale.OrderQueued))
	resp, events := follow(t, n, someID)
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Errorf("content type %q", kind)
	}
	for _, state := range []sale.OrderState{sale.OrderQueued, sale.OrderCreated, sale.OrderPaid} {
		n.put(orderOf(state))
		e := next(t, events)
		if e.kind != "order" || e.id != string(state) || !strings.Contains(e.data, `"state":"`+string(state)+`"`) {
			t.Errorf("got %+v, want an order event of %s", e, state)
		}
	}
	if e := next(t, events); e.kind != "end" || e.data != `{"reason":"final"}` {
		t.Errorf("got %+v, want the end", e)
	}
	closed(t, events)

	again, _ := follow(t, n, someID, "Last-Event-ID: PAID")
	if again.StatusCode != 204 {
		t.Errorf("connecting again after the end: %d, want 204", again.StatusCode)
	}
}

func TestStreamBeatsWhileNothingHappens(t *testing.T) {
	n := startNode(t, quick)
	n.put(orderOf(sale.OrderCreated))
	_, events := follow(t, n, someID)
	next(t, events)
	select {
	case e := <-events:
		if e.kind != "comment" {
			t.Errorf("got %+v, want a heartbeat", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("no heartbeat")
	}
}

func TestStreamEndsAtItsAge(t *testing.T) {
	n := startNode(t, func(c *Config) { quick(c); c.StreamMaxAgeMs = 50 })
	n.put(orderOf(sale.OrderCreated))
	_, events := follow(t, n, someID)
	next(t, events)
	if e := next(t, events); e.data != `{"reason":"timeout"}` {
		t.Errorf("got %+v, want the end by age", e)
	}
	closed(t, events)
}

func TestStreamsAreBounded(t *testing.T) {
	n := startNode(t, func(c *Config) { quick(c); c.MaxStreams = 1 })
	n.put(orderOf(sale.OrderCreated))
	first, events := follow(t, n, someID)
	next(t, events)
	second, _ := follow(t, n, someID)
	if second.StatusCode != 503 || second.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d", second.StatusCode)
	}
	_ = first.Body.Close()
	eventually(t, "the slot is free once the client is gone", func() bool {
		third, _ := follow(t, n, someID)
		_ = third.Body.Close()
		return third.StatusCode == 200
	})
}

func TestShutdownEndsStreamsAndIdleConnections(t *testing.T) {
	n := startNode(t, func(c *Config) { quick(c); c.DrainTimeoutMs = 8000 })
	n.put(orderOf(sale.OrderCreated))
	_, events := follow(t, n, someID)
	next(t, events)
	begun := time.Now()
	if err := n.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the stop took %v: it waited for a stream or an idle connection", took)
	}
	if e := next(t, events); e.data != `{"reason":"shutdown"}` {
		t.Errorf("got %+v, want the end by shutdown", e)
	}
	closed(t, events)
}

func TestOrdersAreTheirBuyersOnly(t *testing.T) {
	n := startNode(t, quick)
	o := orderOf(sale.OrderQueued)
	o.Buyer = "u2"
	n.put(o)
	for _, path := range []string{"", "/events"} {
		got := send(t, "GET", n.publicURL()+"/v1/orders/"+someID.String()+path, "", "X-Buyer-Id: u1")
		if p := readProblem(t, got); got.status != 404 || p.Code != "ORDER_NOT_FOUND" {
			t.Errorf("%q of another buyer: %d %s", path, got.status, got.body)
		}
	}
	got := send(t, "GET", n.publicURL()+"/v1/orders/"+someID.String()+"?sku=demo", "", "X-Buyer-Id: u2")
	want := `{"order_id":"` + someID.String() + `","sku":"demo","buyer":"u2","quantity":1,"state":"QUEUED",` +
		`"accepted_at":"2026-01-02T03:04:05.678Z","expires_at":"2026-01-02T03:19:05.678Z"}`
	if got.status != 200 || got.body != want {
		t.Errorf("got %d %s\nwant %s", got.status, got.body, want)
	}
}
