package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))

func fakeWithLetters(t *testing.T) *fakeAPI {
	t.Helper()
	f := newFake(t)
	for i, state := range []sale.DeadState{sale.DeadOpen, sale.DeadReplayed, sale.DeadOpen, sale.DeadOpen, sale.DeadOpen} {
		d := sale.DeadLetter{
			Seq: int64(i + 1), MessageID: "m", SKU: "demo", Error: "two\nlines", Source: "stockade.order.create",
			ContentType: "text/plain", Body: []byte("poison\x1b[2J"), State: state, Attempts: 1, At: time.Unix(1e9, 0).UTC(),
		}
		if i > 0 {
			d.Order = &sale.OrderID{15: byte(i)}
		}
		f.letters = append(f.letters, d)
	}
	f.letters[4].SKU = "other"
	return f
}

func TestDeadLetters(t *testing.T) {
	f := fakeWithLetters(t)
	if got := f.try(t, "dead", "list"); got.code != exitOK || strings.Count(got.stdout, "\n") != 6 {
		t.Errorf("list: got %+v, want a line for each of the 5", got)
	}
	got := f.try(t, "dead", "list", "--state", "OPEN", "--sku", "demo", "-o", "jsonl")
	if got.code != exitOK || strings.Count(got.stdout, "\n") != 3 || strings.Contains(got.stdout, "REPLAYED") {
		t.Errorf("list of some: got %+v", got)
	}
	if got := f.try(t, "dead", "show", "1"); got.code != exitOK || !strings.Contains(got.stdout, "poison [2J") || !strings.Contains(got.stdout, "two lines") {
		t.Errorf("show: got %+v", got)
	}
	if got := f.try(t, "dead", "show", "9"); got.code != exitRefused || !strings.Contains(got.stderr, "DEAD_LETTER_NOT_FOUND") {
		t.Errorf("show of none: got %+v", got)
	}
	if len(f.writes) != 0 {
		t.Errorf("looking wrote %q", f.writes)
	}
}

func TestHandleDeadLetters(t *testing.T) {
	f := fakeWithLetters(t)
	for _, tc := range []struct {
		args  string
		code  int
		says  string
		wrote []string
	}{
		{"replay 1 --dry-run", exitOK, "dead letter 1 is OPEN", nil},
		{"drop 2 --dry-run", exitOK, "would be refused  it is not OPEN", nil},
		{"replay 1", exitOK, "REPLAYED", []string{`POST /admin/v1/dead/1/replay`}},
		{"replay 1", exitRefused, "DEAD_LETTER_HANDLED: it is REPLAYED", []string{`POST /admin/v1/dead/1/replay`}},
		{"drop 3", exitOK, "COMPENSATED", []string{`POST /admin/v1/dead/3/drop`}},
	} {
		f.writes = nil
		got := f.try(t, append([]string{"dead"}, strings.Fields(tc.args)...)...)
		if got.code != tc.code || !strings.Contains(got.stdout+got.stderr, tc.says) || !slices.Equal(f.writes, tc.wrote) {
			t.Errorf("dead %s: got %+v, wrote %q", tc.args, got, f.writes)
		}
	}
}

func TestCancelAndPay(t *testing.T) {
	f := newFake(t)
	f.orders = []sale.Order{
		{ID: sale.OrderID{15: 1}, SKU: "demo", Buyer: "u1", Quantity: 1, State: sale.OrderCreated},
		{ID: sale.OrderID{15: 2}, SKU: "demo", Buyer: "u2", Quantity: 1, State: sale.OrderCreated},
	}
	one, two := f.orders[0].ID.String(), f.orders[1].ID.String()
	payment := `POST /v1/payments {"order_id":"` + two + `","payment_id":"manual-` + two + `"}`
	for _, tc := range []struct {
		args  string
		code  int
		says  string
		wrote []string
	}{
		{"cancel " + one + " --buyer u1 --dry-run", exitOK, one + " is CREATED: 1 of demo for u1", nil},
		{"cancel " + one + " --buyer u1", exitOK, "CLOSED (CANCELLED)", []string{"POST /v1/orders/" + one + "/cancel"}},
		{"pay " + two + " --dry-run", exitOK, payment[len("POST "):], nil},
		{"pay " + two + " --secret " + testSecret, exitOK, "PAID", []string{payment}},
		{"cancel " + two + " --dry-run", exitOK, "would be refused  it is paid", nil},
		{"cancel " + two, exitRefused, "ORDER_PAID", []string{"POST /admin/v1/orders/" + two + "/cancel"}},
		{"show " + two, exitOK, "PAID", nil},
	} {
		f.writes = nil
		got := f.try(t, append([]string{"order"}, strings.Fields(tc.args)...)...)
		if got.code != tc.code || !strings.Contains(got.stdout+got.stderr, tc.says) || !slices.Equal(f.writes, tc.wrote) {
			t.Errorf("order %s: got %+v, wrote %q, want %q and %q", tc.args, got, f.writes, tc.says, tc.wrote)
		}
		if strings.Contains(got.stdout+got.stderr, testSecret) {
			t.Errorf("order %s shows the secret", tc.args)
		}
	}
	if len(f.signed) != 1 || f.signed[0].Get("webhook-id") == "" || !strings.HasPrefix(f.signed[0].Get("webhook-signature"), "v1,") {
		t.Errorf("signed with %v", f.signed)
	}
	var plan dryRun
	got := f.try(t, "order", "cancel", one, "--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &plan); err != nil || len(plan.Requests) != 1 || plan.Now == nil {
		t.Errorf("dry run as data: %+v, %v", got, err)
	}
	// The environment is the better place for a secret.
	env := []string{publicEnv + "=" + f.URL, secretEnv + "=" + testSecret}
	if got := runWith(t, env, "order", "pay", two, "--payment", "pay_9"); got.code != exitOK {
		t.Errorf("with the secret of the environment: %+v", got)
	}
}
