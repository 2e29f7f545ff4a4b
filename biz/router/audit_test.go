package router

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

// auditBook fakes the audit log.
type auditBook struct {
	mu    sync.Mutex
	lines []sale.AuditEntry
	asked sale.AuditFilter // of the last List
}

func (b *auditBook) Record(_ context.Context, e sale.AuditEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.Seq = int64(len(b.lines) + 1)
	b.lines = append(b.lines, e)
}

func (b *auditBook) List(_ context.Context, f sale.AuditFilter) ([]sale.AuditEntry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = f
	all := slices.Clone(b.lines)
	slices.Reverse(all)
	return all[:min(f.Limit, len(all))], nil
}

// lastAsked is the filter of the last List.
func (b *auditBook) lastAsked() sale.AuditFilter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// since returns the lines behind the first n.
func (b *auditBook) since(n int) []sale.AuditEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lines[n:])
}

func (b *auditBook) len() int { return len(b.since(0)) }

// goodBodies are requests of writes that succeed; the other writes need no body.
var goodBodies = map[string]string{
	"POST /admin/v1/skus":              `{"sku":"demo","total":5}`,
	"POST /admin/v1/skus/:sku/adjust":  `{"add":1}`,
	"POST /admin/v1/skus/:sku/slots":   `{"slots":8}`,
	"POST /admin/v1/skus/:sku/path":    `{"path":"mysql"}`,
	"POST /admin/v1/skus/:sku/reshare": `{"full":true}`,
	"PUT /admin/v1/toggles/:name":      `{"value":"pause","reason":"a test"}`,
}

// example fills in a path's parameters.
var example = strings.NewReplacer(":sku", "demo", ":id", someID.String(), ":seq", "1", ":name", "relay")

// Every write is exactly one line of the audit log with who, why and what came of it; a read is none.
func TestEveryWriteIsAudited(t *testing.T) {
	n := startNode(t, nil)
	n.desk.set(func() {
		n.desk.letters = []sale.DeadLetter{letter(1)}
		n.desk.settled = sale.Settled{Outcome: sale.Changed, Order: orderOf(sale.OrderClosed)}
	})
	writes := 0
	for _, r := range adminTable(&handler.API{}) {
		url, body := n.adminURL()+example.Replace(r.path), goodBodies[r.method+" "+r.path]
		before := n.ledger.len()
		got := send(t, r.method, url, body, "Content-Type: application/json", "X-Reason: a test", "X-Request-Id: r-7")
		lines := n.ledger.since(before)
		if !r.writes() {
			if len(lines) != 0 {
				t.Errorf("%s %s: a read is audited: %+v", r.method, r.path, lines)
			}
			continue
		}
		writes++
		if len(lines) != 1 {
			t.Errorf("%s %s: %d lines, want one", r.method, r.path, len(lines))
			continue
		}
		want := sale.AuditEntry{
			Seq: lines[0].Seq, Actor: "ann-admin", Role: "admin", Action: r.action(), Target: lines[0].Target, Detail: body,
			Reason: "a test", Status: got.status, RequestID: "r-7",
		}
		if lines[0] != want || got.status/100 != 2 {
			t.Errorf("%s %s: %d %s, %+v, want %+v", r.method, r.path, got.status, got.body, lines[0], want)
		}
		if parameter := r.parameter(); parameter != "" && lines[0].Target != example.Replace(":"+parameter) || lines[0].Target == "" {
			t.Errorf("%s %s: target %q", r.method, r.path, lines[0].Target)
		}
	}
	if writes < 15 {
		t.Errorf("only %d writes found", writes)
	}
}

func TestActions(t *testing.T) {
	for _, tt := range []struct{ method, path, want string }{
		{"POST", "/admin/v1/skus", "sku.create"},
		{"POST", "/admin/v1/skus/:sku/open", "sku.open"},
		{"POST", "/admin/v1/orders/:id/cancel", "order.cancel"},
		{"PUT", togglePath, "toggle.set"},
		{"DELETE", togglePath, "toggle.clear"},
		{"POST", "/admin/v1/dead/:seq/drop", "dead.drop"},
	} {
		if got := (adminRoute{method: tt.method, path: tt.path}).action(); got != tt.want {
			t.Errorf("%s %s is %s, want %s", tt.method, tt.path, got, tt.want)
		}
	}
}

// What was refused is in the log too, as soon as it is known who wanted it; a toggle's reason is in its body.
func TestRefusedWritesAreAudited(t *testing.T) {
	n := startNode(t, nil)
	open := n.adminURL() + "/admin/v1/skus/demo/open"
	for _, tt := range []struct {
		name, url, method, body string
		header                  []string
		status                  int
		want                    sale.AuditEntry
	}{
		{"no role", open, "POST", "", []string{"Authorization: Bearer viewer"}, 403, sale.AuditEntry{Actor: "ann-viewer", Role: "viewer", Action: "sku.open", Target: "demo", Reason: "a test", Status: 403}},
		{"no reason", open, "POST", "", []string{"X-Reason: "}, 422, sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "sku.open", Target: "demo", Status: 422}},
		{"two reasons", open, "POST", "", []string{"X-Reason: a", "X-Reason: b"}, 422, sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "sku.open", Target: "demo", Status: 422}},
		{"a long reason", open, "POST", "", []string{"X-Reason: " + strings.Repeat("r", 1025)}, 422, sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "sku.open", Target: "demo", Status: 422}},
		{"no such SKU", strings.Replace(open, "demo", "none", 1), "POST", "", nil, 404, sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "sku.open", Target: "none", Reason: "a test", Status: 404}},
		{"a bad body", strings.Replace(open, "open", "adjust", 1), "POST", `{"ad":1}`, nil, 400, sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "sku.adjust", Target: "demo", Detail: `{"ad":1}`, Reason: "a test", Status: 400}},
		{
			"a toggle", n.adminURL() + "/admin/v1/toggles/entrance", "PUT", `{"value":"closed","scope":"demo","reason":"too hot"}`,
			[]string{"X-Reason: "},
			200,
			sale.AuditEntry{Actor: "ann-admin", Role: "admin", Action: "toggle.set", Target: "entrance of demo", Detail: `{"value":"closed","scope":"demo","reason":"too hot"}`, Reason: "too hot", Status: 200},
		},
	} {
		before := n.ledger.len()
		got := send(t, tt.method, tt.url, tt.body, append(tt.header, "X-Request-Id: r-7")...)
		lines := n.ledger.since(before)
		tt.want.Seq, tt.want.RequestID = int64(before+1), "r-7"
		if got.status != tt.status || len(lines) != 1 || lines[0] != tt.want {
			t.Errorf("%s: %d %s, %+v, want %+v", tt.name, got.status, got.body, lines, tt.want)
		}
	}
	before := n.ledger.len()
	if got := send(t, "POST", open, "", "Authorization: Bearer nobody"); got.status != 401 || n.ledger.len() != before {
		t.Errorf("somebody unknown: %d, and %d lines", got.status, n.ledger.len()-before)
	}
	n.shop.set(func() { n.shop.skuErr = fmt.Errorf("secret trouble") })
	if got := send(t, "POST", open, ""); got.status != 500 || n.ledger.since(before)[0].Status != 500 {
		t.Errorf("a failure: %d, %+v", got.status, n.ledger.since(before))
	}
}

func TestListAudit(t *testing.T) {
	n := startNode(t, nil)
	at := n.adminURL() + "/admin/v1/audit"
	if got := send(t, "GET", at, ""); got.status != 200 || got.body != `{"entries":[]}` {
		t.Errorf("an empty log: %d %s", got.status, got.body)
	}
	for range 3 {
		send(t, "POST", n.adminURL()+"/admin/v1/skus/demo/pause", "")
	}
	var page handler.AuditPage
	got := send(t, "GET", at+"?limit=2&actor=ann-admin&action=sku.pause&target=demo&after=9", "", "Authorization: Bearer viewer")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.Entries) != 2 || page.Next != "2" || page.Entries[0].Seq != 3 {
		t.Errorf("%v, %+v in %s", err, page, got.body)
	}
	if want := (sale.AuditFilter{Actor: "ann-admin", Action: "sku.pause", Target: "demo", After: 9, Limit: 2}); n.ledger.lastAsked() != want {
		t.Errorf("asked for %+v, want %+v", n.ledger.lastAsked(), want)
	}
	for _, query := range []string{"limit=0", "limit=201", "after=0", "after=x", "actor=" + strings.Repeat("a", 256)} {
		if got := send(t, "GET", at+"?"+query, ""); got.status != http.StatusBadRequest {
			t.Errorf("%.20s: %d %s", query, got.status, got.body)
		}
	}
}
