package router

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

// levers fakes the toggles: it keeps what was set.
type levers struct {
	mu   sync.Mutex
	set  []sale.Toggle
	gone [][2]string // names and scopes
	err  error
}

func (l *levers) List(context.Context) []service.ToggleState {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []service.ToggleState{{Toggle: sale.Toggle{Name: sale.ToggleRelay, Value: sale.WorkRuns}, Source: service.ToggleDefault}}
	for _, t := range l.set {
		all = append(all, service.ToggleState{Toggle: t, Source: service.ToggleStored})
	}
	return all
}

func (l *levers) Set(_ context.Context, t sale.Toggle) ([]service.PathMove, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.set = append(l.set, t)
	}
	if l.err == nil && t.Name == sale.TogglePath {
		return []service.PathMove{{SKU: "demo", Path: t.Value}}, nil
	}
	return nil, l.err
}

func (l *levers) Clear(_ context.Context, name, scope string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.gone = append(l.gone, [2]string{name, scope})
	}
	return l.err
}

// fail makes every later Set fail.
func (l *levers) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// stored lists what was set.
func (l *levers) stored() []sale.Toggle {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.set)
}

// cleared lists what was cleared, by name and scope.
func (l *levers) cleared() [][2]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.gone)
}

func TestToggles(t *testing.T) {
	n := startNode(t, nil)
	at := n.adminURL() + "/admin/v1/toggles"
	body := `{"value":"journal","scope":"demo","reason":"drill","for":"10m"}`
	got := send(t, "PUT", at+"/durability", body, "Content-Type: application/json")
	want := sale.Toggle{
		Name: "durability", Scope: "demo", Value: "journal", Reason: "drill", Actor: "ann-admin",
		Until: testNow.Add(10 * time.Minute).Truncate(time.Millisecond),
	}
	if got.status != 200 || len(n.levers.stored()) != 1 || n.levers.stored()[0] != want {
		t.Fatalf("got %+v, set %+v, want %+v", got, n.levers.stored(), want)
	}
	var list handler.TogglesJSON
	if got := send(t, "GET", at, ""); got.status != 200 || json.Unmarshal([]byte(got.body), &list) != nil || len(list.Toggles) != 2 ||
		list.Toggles[1].Toggle != want || list.Toggles[1].Source != service.ToggleStored || strings.Contains(got.body, "0001-01-01") {
		t.Errorf("list: %+v", got)
	}
}

func TestClearToggle(t *testing.T) {
	n := startNode(t, nil)
	at := n.adminURL() + "/admin/v1/toggles/"
	for _, path := range []string{"entrance?scope=demo", "rate_scale"} {
		if got := send(t, "DELETE", at+path, ""); got.status != 200 || !strings.Contains(got.body, `"toggles"`) {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	if want := [][2]string{{"entrance", "demo"}, {"rate_scale", ""}}; !slices.Equal(n.levers.cleared(), want) {
		t.Errorf("cleared %v, want %v", n.levers.cleared(), want)
	}
	for _, slip := range []string{"?sku=demo", "?Scope=demo", "?scope=", "?scope", "?scope=demo&scope=hat", "?scope=demo&x=1"} {
		if got := send(t, "DELETE", at+"entrance"+slip, ""); got.status != 400 || len(n.levers.cleared()) != 2 {
			t.Errorf("%s: got %+v", slip, got)
		}
	}
	if got := send(t, "DELETE", at+"pathos", ""); got.status != 400 || !strings.Contains(got.body, `"field":"name"`) {
		t.Errorf("a toggle that there is not: %+v", got)
	}
	if got := send(t, "DELETE", at+"relay", "", "X-Reason: "); got.status != 422 || !strings.Contains(got.body, `"field":"X-Reason"`) {
		t.Errorf("without a reason: %+v", got)
	}
	n.levers.fail(sale.ErrUnavailable)
	if got := send(t, "DELETE", at+"relay", ""); got.status != 503 {
		t.Errorf("without MySQL: %+v", got)
	}
}

func TestTogglesRefuse(t *testing.T) {
	n := startNode(t, nil)
	at := n.adminURL() + "/admin/v1/toggles/"
	for _, tt := range []struct {
		name, body    string
		status        int
		code, because string
	}{
		{"pathos", `{"value":"mysql","reason":"r"}`, 400, "BAD_REQUEST", "name"},
		{"relay", `{"reason":"r"}`, 422, "INVALID_FIELD", "value"},
		{"relay", `{"value":"pause"}`, 422, "INVALID_FIELD", "reason"},
		{"relay", `{"value":"pause","reason":"a\u001b[31m"}`, 422, "INVALID_FIELD", "reason"},
		{"relay", `{"value":"pause","reason":"a\u202eb"}`, 422, "INVALID_FIELD", "reason"},
		{"relay", `{"value":"pause","reason":"r","for":"0s"}`, 422, "INVALID_FIELD", "for"},
		{"relay", `{"value":"pause","reason":"r","for":"721h"}`, 422, "INVALID_FIELD", "for"},
		{"relay", `{"value":"pause","reason":"r","who":"x"}`, 400, "MALFORMED_BODY", "who"},
		{"relay", ``, 400, "MALFORMED_BODY", "body"},
	} {
		got := send(t, "PUT", at+tt.name, tt.body, "Content-Type: application/json")
		if got.status != tt.status || !strings.Contains(got.body, tt.code) || !strings.Contains(got.body, `"field":"`+tt.because+`"`) {
			t.Errorf("%s %s: got %+v, want %d %s about %s", tt.name, tt.body, got, tt.status, tt.code, tt.because)
		}
	}
	n.levers.fail(sale.BadInput("value", "must be one of run, pause"))
	if got := send(t, "PUT", at+"relay", `{"value":"x","reason":"r"}`); got.status != 422 {
		t.Errorf("a value that there is not: %+v", got)
	}
	n.levers.fail(sale.ErrUnavailable)
	if got := send(t, "PUT", at+"relay", `{"value":"pause","reason":"r"}`); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("without MySQL: %+v", got)
	}
	if len(n.levers.stored()) != 0 {
		t.Errorf("set %+v", n.levers.stored())
	}
}

// A poll that names the SKU is answered for that SKU, and one that names nonsense is refused.
func TestPollByRequestSKU(t *testing.T) {
	n := startNode(t, nil)
	n.put(orderOf(sale.OrderQueued))
	id := orderOf(sale.OrderQueued).ID.String()
	for query, want := range map[string]int{"": 200, "?sku=demo": 200, "?sku=other": 404, "?sku=a%2Fb": 400} {
		got := send(t, "GET", n.publicURL()+"/v1/orders/"+id+query, "", "X-Buyer-Id: u1")
		if got.status != want {
			t.Errorf("%q: got %+v, want %d", query, got, want)
		}
	}
}
