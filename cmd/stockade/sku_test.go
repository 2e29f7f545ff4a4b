package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"stockade/biz/sale"
)

func TestASaleFromCreateToClose(t *testing.T) {
	f := newFake(t)
	for _, step := range []struct{ args, state, sent string }{
		{"sku create demo --total 500 --limit 2", "DRAFT", `POST /admin/v1/skus {"sku":"demo","total":500,"limit":2}`},
		{"sku load demo", "LOADED", "POST /admin/v1/skus/demo/load"},
		{"sku open demo", "OPEN", "POST /admin/v1/skus/demo/open"},
		{"sku pause demo", "PAUSED", "POST /admin/v1/skus/demo/pause"},
		{"sku adjust demo +100", "PAUSED", `POST /admin/v1/skus/demo/adjust {"add":100}`},
		{"sku close demo", "CLOSED", "POST /admin/v1/skus/demo/close"},
	} {
		f.writes = nil
		got := f.try(t, append(strings.Fields(step.args), "-o", "json")...)
		var v struct{ SKU, State string }
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.code != exitOK || v.SKU != "demo" || v.State != step.state {
			t.Fatalf("%s: got %+v (%v), want state %s", step.args, got, err, step.state)
		}
		if !slices.Equal(f.writes, []string{step.sent}) {
			t.Errorf("%s: sent %q, want %q", step.args, f.writes, step.sent)
		}
	}
}

func TestCreateSendsEveryFlagThatIsGiven(t *testing.T) {
	f := newFake(t)
	got := f.try(t, "sku", "create", "demo", "--total", "500", "--limit", "3", "--slots", "16", "--reserve-pct", "0",
		"--opens-at", "2026-11-27T09:00:00Z", "--closes-at", "2026-11-28T09:00:00+01:00", "--payment-window", "10m",
		"--purchase-token", "required", "--open")
	want := []string{
		`POST /admin/v1/skus {"sku":"demo","total":500,"limit":3,"slots":16,"reserve_pct":0,"opens_at":"2026-11-27T09:00:00Z",` +
			`"closes_at":"2026-11-28T09:00:00+01:00","payment_window":"10m","purchase_token":"required"}`,
		"POST /admin/v1/skus/demo/load", "POST /admin/v1/skus/demo/open",
	}
	if got.code != exitOK || !slices.Equal(f.writes, want) || !strings.Contains(got.stdout, "OPEN") {
		t.Errorf("got %+v, sent %q, want %q", got, f.writes, want)
	}
}

// A create that gets half-way says how far it came.
func TestCreateTellsWhereItStopped(t *testing.T) {
	f := newFake(t)
	calls := 0
	f.refuse = func(w http.ResponseWriter) bool {
		if calls++; calls < 3 {
			return false
		}
		refuse(w, 503, "BUSY", "", "")
		return true
	}
	got := f.try(t, "sku", "create", "demo", "--total", "5", "--open")
	if got.code != exitTemporary || got.stdout != "" || !strings.Contains(got.stderr, "demo was created and loaded, but not: open: BUSY") {
		t.Errorf("got %+v", got)
	}
}

func TestANegativeAdjustmentIsNoFlag(t *testing.T) {
	for _, args := range [][]string{
		{"sku", "adjust", "demo", "-20"},
		{"sku", "adjust", "demo", "-20", "-o", "none"},
		{"-o", "none", "sku", "adjust", "demo", "-20"},
		{"sku", "adjust", "demo", "-o", "none", "-20"},
		{"sku", "adjust", "-o=none", "demo", "--", "-20"},
		{"sku", "adjust", "--", "demo", "-20"},
	} {
		f := newFake(t)
		f.add("demo", sale.Open, 100, 30)
		got := f.try(t, args...)
		if want := `POST /admin/v1/skus/demo/adjust {"add":-20}`; got.code != exitOK || !slices.Equal(f.writes, []string{want}) {
			t.Errorf("%v: got %+v, sent %q", args, got, f.writes)
		}
	}
}

// A dry run sends no write, shows the request and the state, and says when it would be refused.
func TestADryRunChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		args    string
		refused bool
		shows   []string
	}{
		{"sku create new --total 5 --open", false, []string{`POST /admin/v1/skus {"sku":"new","total":5}`, "skus/new/load", "skus/new/open", "no such SKU"}},
		{"sku create demo --total 5", true, []string{"the SKU id is taken", "demo is OPEN"}},
		{"sku load fresh", false, []string{"POST /admin/v1/skus/fresh/load"}},
		{"sku load demo", true, []string{"sku demo is OPEN: cannot load"}},
		{"sku load old", true, []string{"sku old is CLOSED: cannot load"}},
		{"sku open demo", true, []string{"sku demo is OPEN: cannot open"}},
		{"sku pause demo", false, []string{"demo is OPEN: total 100, promised 30, available 70"}},
		{"sku close demo", false, []string{"POST /admin/v1/skus/demo/close"}},
		{"sku adjust demo -70", false, []string{`{"add":-70}`}},
		{"sku adjust old +1", true, []string{"sku old is CLOSED: cannot adjust"}},
		{"sku adjust demo -71", true, []string{"the total would be 29, below the 30 promised units"}},
	} {
		f := newFake(t)
		f.add("fresh", sale.Draft, 100, 0)
		f.add("demo", sale.Open, 100, 30)
		f.add("old", sale.Closed, 100, 30)
		got := f.try(t, append(strings.Fields(tt.args), "--dry-run")...)
		if got.code != exitOK || len(f.writes) > 0 || !strings.Contains(got.stdout, "nothing is changed") {
			t.Errorf("%s: got %+v, sent %q", tt.args, got, f.writes)
		}
		if told := strings.Contains(got.stdout, "would be refused"); told != tt.refused {
			t.Errorf("%s: refusal told: %v, want %v:\n%s", tt.args, told, tt.refused, got.stdout)
		}
		for _, part := range tt.shows {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%s: %q is missing from\n%s", tt.args, part, got.stdout)
			}
		}
		asData := f.try(t, append(strings.Fields(tt.args), "--dry-run", "-o", "json")...)
		var plan dryRun
		if err := json.Unmarshal([]byte(asData.stdout), &plan); err != nil || len(plan.Requests) == 0 || (plan.Refused != "") != tt.refused {
			t.Errorf("%s -o json: got %+v (%v)", tt.args, asData, err)
		}
	}
}

func TestListFollowsThePages(t *testing.T) {
	f := newFake(t)
	want := []string{}
	for i := range 8 {
		id := fmt.Sprintf("sku-%d", i)
		f.add(id, sale.Draft, int64(i+1), 0)
		want = append(want, id)
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, want},
		{[]string{"--limit", "2"}, want[:2]},
		{[]string{"--limit", "5"}, want[:5]},
		{[]string{"--after", "sku-5"}, want[6:]},
		{[]string{"--after", "sku-7"}, nil},
	} {
		got := f.try(t, append([]string{"sku", "list", "-o", "jsonl"}, tt.args...)...)
		ids := []string{}
		for line := range strings.Lines(got.stdout) {
			var v struct{ SKU string }
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			ids = append(ids, v.SKU)
		}
		if got.code != exitOK || !slices.Equal(ids, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.args, ids, tt.want)
		}
	}
	if got := f.try(t, "sku", "list", "--after", "z", "-o", "json"); strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("an empty list is %q, want []", got.stdout)
	}
	if got := f.try(t, "sku", "list"); !strings.HasPrefix(got.stdout, "SKU ") || strings.Count(got.stdout, "\n") != 9 {
		t.Errorf("the table is\n%s", got.stdout)
	}
	if got := f.try(t, "sku", "list", "-o", "none"); got.stdout+got.stderr != "" || got.code != exitOK {
		t.Errorf("-o none: got %+v", got)
	}
}

// A service whose pages lead nowhere ends the list with an error, not in a circle.
func TestAListThatGoesInCirclesEnds(t *testing.T) {
	f := newFake(t)
	f.refuse = func(w http.ResponseWriter) bool {
		reply(w, 200, map[string]any{"skus": []any{map[string]string{"sku": "a"}}, "next": "a"})
		return true
	}
	if got := f.try(t, "sku", "list"); got.code != exitUnavailable || got.stdout != "" {
		t.Errorf("got %+v", got)
	}
}

func TestShowHasThreeViews(t *testing.T) {
	f := newFake(t)
	f.add("demo", sale.Open, 100, 30)
	for args, parts := range map[string][]string{
		"sku show demo":          {"state", "OPEN", "promised", "30", "2026-01-02T03:04:05Z", "closes at", "-"},
		"sku show demo --shares": {"SHARE", "LEFT", "gone", "sealed", "reserve"},
		"sku show demo --books":  {"live units", "30", "agree", "yes"},
	} {
		got := f.try(t, strings.Fields(args)...)
		for _, part := range parts {
			if got.code != exitOK || !strings.Contains(got.stdout, part) {
				t.Errorf("%s: %q is missing from %+v", args, part, got)
			}
		}
	}
	// What the tool does not know of is in the JSON all the same.
	f.refuse = func(w http.ResponseWriter) bool {
		reply(w, 200, map[string]any{"sku": "demo", "colour": "red"})
		return true
	}
	if got := f.try(t, "sku", "show", "demo", "-o", "json"); !strings.Contains(got.stdout, `"colour": "red"`) {
		t.Errorf("got %+v", got)
	}
}

func TestBooksThatDisagreeSaySo(t *testing.T) {
	for _, tt := range []struct {
		books sale.Books
		want  string
	}{
		{sale.Books{Total: 5, Promised: 3, LiveUnits: 3, LiveOrders: 3, Orders: 3}, "yes"},
		{sale.Books{Total: 5, Promised: 3, LiveUnits: 3, Missing: 1}, "yes, with orders on their way"},
		{sale.Books{Total: 5, Promised: 3, LiveUnits: 2}, "NO"},
		{sale.Books{Total: 5, Promised: 6, LiveUnits: 6}, "NO"},
		{sale.Books{Total: 5, Strangers: 1}, "NO"},
		{sale.Books{Total: 5, OverLimit: 1}, "NO"},
	} {
		if got := agreement(tt.books); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.books, got, tt.want)
		}
	}
}
