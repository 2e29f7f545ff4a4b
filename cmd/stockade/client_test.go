package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

// Refusals become one line with code, field and detail, and a status that scripts can branch on.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		status        int
		code          string
		field, detail string
		want          int
		line          string
	}{
		{400, "BAD_REQUEST", "sku", "must match x", exitData, "BAD_REQUEST: sku: must match x"},
		{401, "UNAUTHENTICATED", "", "", exitDenied, "UNAUTHENTICATED: Title (the token is from " + adminTokenEnv + ")"},
		{403, "FORBIDDEN", "", "", exitDenied, "FORBIDDEN: Title"},
		{404, "SKU_NOT_FOUND", "sku", "", exitRefused, "SKU_NOT_FOUND: sku: Title"},
		{409, "WRONG_STATE", "", "sku a is OPEN:\ncannot load", exitRefused, "WRONG_STATE: sku a is OPEN: cannot load"},
		{413, "BODY_TOO_LARGE", "body", "", exitData, "BODY_TOO_LARGE: body: Title"},
		{422, "INVALID_FIELD", "add", "must not be \x1b[31mzero", exitData, "INVALID_FIELD: add: must not be  [31mzero"},
		{429, "RATE_LIMITED", "", "", exitTemporary, "RATE_LIMITED: Title"},
		{500, "INTERNAL", "", "", exitUnavailable, "INTERNAL: Title (request r-1)"},
		{503, "BUSY", "", "", exitTemporary, "BUSY: Title (request r-1)"},
		{502, "", "", "", exitUnavailable, "HTTP 502 Bad Gateway"},
		{302, "", "", "", exitRefused, "HTTP 302 Found"},
	} {
		f := newFake(t)
		f.refuse = func(w http.ResponseWriter) bool {
			refuse(w, tt.status, tt.code, tt.field, tt.detail)
			return true
		}
		for _, format := range formats {
			got := f.try(t, "sku", "load", "demo", "-o", format)
			if got.code != tt.want || got.stdout != "" || got.stderr != "stockade: "+tt.line+"\n" {
				t.Errorf("%d %s: got %+v, want status %d and %q", tt.status, tt.code, got, tt.want, tt.line)
			}
		}
	}
}

func TestAnswersThatAreNotOurs(t *testing.T) {
	for body, want := range map[string]string{
		"<html>":                       "the answer is not JSON; is STOCKADE_ADMIN_URL right?",
		"{}":                           "not a SKU",
		"[]":                           "not a SKU",
		strings.Repeat("x", 9<<20):     "is larger than",
		`{"sku": "a", "slots": "two"}`: "not a SKU",
	} {
		f := newFake(t)
		f.refuse = func(w http.ResponseWriter) bool {
			fmt.Fprint(w, body)
			return true
		}
		if got := f.try(t, "sku", "show", "demo"); got.code != exitUnavailable || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%.20q: got %+v, want %q", body, got, want)
		}
	}
}

// A flag is stronger than the environment; neither shows a password.
func TestTheAddressOfTheService(t *testing.T) {
	f := newFake(t)
	f.add("demo", sale.Draft, 5, 0)
	nowhere := "http://user:S3ntinel@127.0.0.1:1"
	if got := runWith(t, []string{adminEnv + "=" + nowhere}, "sku", "list", "--admin", f.URL+"/"); got.code != exitOK {
		t.Errorf("with the flag: got %+v", got)
	}
	for _, args := range [][]string{{"sku", "list"}, {"sku", "list", "--admin", nowhere}, {"sku", "list", "--admin", "://" + nowhere}} {
		got := runWith(t, []string{adminEnv + "=" + nowhere}, args...)
		if got.code == exitOK || strings.Contains(got.stdout+got.stderr, "S3ntinel") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
}

func TestOrders(t *testing.T) {
	f := newFake(t)
	for i := range 7 {
		o := sale.Order{SKU: "demo", Buyer: "u1", Quantity: 1, State: sale.OrderCreated, AcceptedAt: time.Unix(1e9, 0).UTC()}
		o.ID[0] = byte(i + 1)
		if i == 6 {
			o.State, o.Reason = sale.OrderClosed, sale.ReasonCompensated
		}
		f.orders = append(f.orders, o)
	}
	if got := f.try(t, "order", "list", "--buyer", "u1"); got.code != exitOK || strings.Count(got.stdout, "\n") != 8 || !strings.Contains(got.stdout, "CLOSED (COMPENSATED)") {
		t.Errorf("list: got %+v", got)
	}
	id := f.orders[2].ID.String()
	if got := f.try(t, "order", "show", strings.ToUpper(id), "--buyer", "u1"); got.code != exitOK || !strings.Contains(got.stdout, id) {
		t.Errorf("show: got %+v", got)
	}
	if got := f.try(t, "order", "show", id, "--buyer", "u2"); got.code != exitRefused || !strings.Contains(got.stderr, "ORDER_NOT_FOUND") {
		t.Errorf("another buyer's order: got %+v", got)
	}
	var o sale.Order
	if got := f.try(t, "order", "show", id, "--buyer", "u1", "-o", "json"); json.Unmarshal([]byte(got.stdout), &o) != nil || o.ID != f.orders[2].ID {
		t.Errorf("show -o json: got %+v", got)
	}
}

func TestCheckAnswersForMonitors(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		code   int
		says   string
	}{
		{200, `{"ready":true}`, 0, "ready\n"},
		{200, `{"ready":true,"degraded":["redis","mysql"]}`, 1, "degraded: redis, mysql\n"},
		{503, `{"ready":false,"reasons":["starting"]}`, 2, "not ready: starting\n"},
		{200, `{}`, 2, "not ready\n"},
		{404, `{}`, 3, "answered HTTP 404"},
		{200, `<html>`, 3, "unknown: "},
	} {
		f := newFake(t)
		f.ready = func() (int, string) { return tt.status, tt.body }
		got := f.try(t, "check")
		if got.code != tt.code || !strings.Contains(got.stdout, tt.says) || got.stderr != "" {
			t.Errorf("%d %s: got %+v, want %d and %q", tt.status, tt.body, got, tt.code, tt.says)
		}
	}
	if got := runWith(t, nil, "check", "--public", "http://127.0.0.1:1", "-o", "json"); got.code != 2 || !strings.Contains(got.stdout, `"status": "not ready"`) {
		t.Errorf("nobody there: got %+v", got)
	}
}

func TestCheckWaits(t *testing.T) {
	f := newFake(t)
	looks := 0
	f.ready = func() (int, string) {
		if looks++; looks < 3 {
			return 503, `{"ready":false,"reasons":["starting"]}`
		}
		return 200, `{"ready":true}`
	}
	if got := f.try(t, "check", "--wait", "1m"); got.code != 0 || looks != 3 {
		t.Errorf("got %+v after %d looks", got, looks)
	}
	f.ready = func() (int, string) { return 503, `{"ready":false,"reasons":["stopping"]}` }
	if got := f.try(t, "check", "--wait", "1ms"); got.code != 2 {
		t.Errorf("never ready: got %+v", got)
	}
}

func TestCtrlCEndsACall(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(context.Background())
	f.refuse = func(http.ResponseWriter) bool {
		cancel()
		return false
	}
	var out, errs strings.Builder
	code := run(ctx, []string{"sku", "load", "demo", "--admin", f.URL}, strings.NewReader(""), &out, &errs, nil)
	if code != exitInterrupted && code != exitRefused { // the answer may have been faster
		t.Errorf("got %d, %q, %q", code, out.String(), errs.String())
	}
	code = run(ctx, []string{"check", "--wait", "1m", "--public", f.URL}, strings.NewReader(""), &out, &errs, nil)
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("check: got %d, %q, %q", code, out.String(), errs.String())
	}
}
