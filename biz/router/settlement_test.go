package router

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

// Secrets of the payment provider: the one in use, the next one, and one of somebody else.
var (
	secretNow  = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 32)))
	secretNext = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", 24)))
	secretElse = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("c", 64)))
)

// desk fakes the settlement and the dead letters: it answers what a test sets, and keeps what it was asked.
type desk struct {
	mu      sync.Mutex
	asked   []sale.Change
	settled sale.Settled
	err     error
	order   sale.Order

	filter  sale.DeadFilter
	letters []sale.DeadLetter
	handled []string
	deadErr error
}

func (d *desk) change(c sale.Change) (sale.Settled, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, c)
	return d.settled, d.err
}

func (d *desk) Pay(_ context.Context, id sale.OrderID, payment string) (sale.Settled, error) {
	return d.change(sale.Change{Kind: sale.Pay, Order: id, Payment: payment})
}

func (d *desk) Cancel(_ context.Context, id sale.OrderID, buyer, actor string) (sale.Settled, error) {
	return d.change(sale.Change{Kind: sale.Cancel, Order: id, Buyer: buyer, Actor: actor})
}

func (d *desk) AnyOrder(_ context.Context, id sale.OrderID) (sale.Order, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.order.ID != id {
		return sale.Order{}, sale.ErrNotFound
	}
	return d.order, d.err
}

func (d *desk) List(_ context.Context, f sale.DeadFilter) ([]sale.DeadLetter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.filter = f
	return d.letters[:min(len(d.letters), f.Limit)], d.deadErr
}

func (d *desk) Show(_ context.Context, seq int64) (sale.DeadLetter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.letters {
		if l.Seq == seq {
			return l, d.deadErr
		}
	}
	return sale.DeadLetter{}, sale.ErrNotFound
}

func (d *desk) Replay(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error) {
	return d.handle(ctx, "replay", seq, actor)
}

func (d *desk) Drop(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error) {
	return d.handle(ctx, "drop", seq, actor)
}

func (d *desk) handle(ctx context.Context, what string, seq int64, actor string) (sale.DeadLetter, error) {
	d.mu.Lock()
	d.handled = append(d.handled, what+" by "+actor)
	d.mu.Unlock()
	return d.Show(ctx, seq)
}

// set changes or reads the fake under its lock.
func (d *desk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func startTill(t *testing.T) *node {
	t.Helper()
	return startNode(t, func(c *Config) { c.PaymentSecrets = []string{secretNow, secretNext} })
}

const paymentBody = `{"payment_id":"pay_1","order_id":"` + anyID + `"}`

// signed are the header lines of a callback.
func signed(t testing.TB, secret, id string, at time.Time, body string) []string {
	t.Helper()
	pairs, err := handler.SignWebhook(secret, id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		lines = append(lines, pairs[i]+": "+pairs[i+1])
	}
	return lines
}

// TestForgedCallbacks sends callbacks that nobody may believe. None reaches the settlement.
func TestForgedCallbacks(t *testing.T) {
	n := startTill(t)
	good := signed(t, secretNow, "msg_1", testNow, paymentBody)
	with := func(i int, line string) []string {
		lines := slices.Clone(good)
		lines[i] = line
		return lines
	}
	signature := strings.TrimPrefix(good[2], "webhook-signature: ")
	for _, tc := range []struct {
		name, body, field string
		header            []string
	}{
		{"no headers", paymentBody, "webhook-id", nil},
		{"no timestamp", paymentBody, "webhook-timestamp", []string{good[0], good[2]}},
		{"no signature", paymentBody, "webhook-signature", good[:2]},
		{"two ids", paymentBody, "webhook-id", append(slices.Clone(good), good[0])},
		{"two signatures headers", paymentBody, "webhook-signature", append(slices.Clone(good), good[2])},
		{"another secret", paymentBody, "webhook-signature", signed(t, secretElse, "msg_1", testNow, paymentBody)},
		{"another body", strings.Replace(paymentBody, "pay_1", "pay_2", 1), "webhook-signature", good},
		{"a space more", paymentBody + " ", "webhook-signature", good},
		{"another id", paymentBody, "webhook-signature", with(0, "webhook-id: msg_2")},
		{"a fresher timestamp", paymentBody, "webhook-signature", with(1, "webhook-timestamp: 1767323046")},
		{"a timestamp that is no number", paymentBody, "webhook-signature", with(1, "webhook-timestamp: soon")},
		{"version 2", paymentBody, "webhook-signature", with(2, "webhook-signature: "+strings.Replace(signature, "v1,", "v2,", 1))},
		{"no version", paymentBody, "webhook-signature", with(2, "webhook-signature: "+strings.TrimPrefix(signature, "v1,"))},
		{"cut off", paymentBody, "webhook-signature", with(2, good[2][:len(good[2])-1])},
		{"empty", paymentBody, "webhook-signature", with(2, "webhook-signature: v1,")},
		{"stale", paymentBody, "webhook-timestamp", signed(t, secretNow, "msg_1", testNow.Add(-5*time.Minute-time.Second), paymentBody)},
		{"from the future", paymentBody, "webhook-timestamp", signed(t, secretNow, "msg_1", testNow.Add(5*time.Minute+time.Second), paymentBody)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := send(t, "POST", n.publicURL()+"/v1/payments", tc.body, tc.header...)
			if p := readProblem(t, got); got.status != 401 || p.Code != "BAD_SIGNATURE" || p.Field != tc.field {
				t.Errorf("got %d %s, want BAD_SIGNATURE of %s", got.status, got.body, tc.field)
			}
			if got.header.Get("WWW-Authenticate") == "" {
				t.Error("a 401 without WWW-Authenticate")
			}
		})
	}
	n.desk.set(func() {
		if len(n.desk.asked) != 0 {
			t.Errorf("forged callbacks reached the settlement: %v", n.desk.asked)
		}
	})
}

// TestSignedCallbacks sends what the provider may send, and checks that a body is only looked at behind its signature.
func TestSignedCallbacks(t *testing.T) {
	n := startTill(t)
	id, _ := sale.ParseOrderID(anyID)
	order := orderOf(sale.OrderPaid)
	order.ID = id
	n.desk.set(func() { n.desk.settled = sale.Settled{Outcome: sale.Changed, Order: order} })
	now := signed(t, secretNow, "msg_1", testNow, paymentBody)
	next := signed(t, secretNext, "msg_1", testNow, paymentBody)
	both := slices.Clone(now)
	both[2] = "webhook-signature: v2,Zm9v " + strings.TrimPrefix(next[2], "webhook-signature: ")
	var first string
	for name, header := range map[string][]string{
		"the secret in use": now, "the next secret": next, "several signatures": both, "again": now,
		"almost stale":   signed(t, secretNow, "msg_1", testNow.Add(-4*time.Minute), paymentBody),
		"almost too new": signed(t, secretNow, "msg_1", testNow.Add(4*time.Minute), paymentBody),
	} {
		got := send(t, "POST", n.publicURL()+"/v1/payments", paymentBody, header...)
		if first == "" {
			first = got.body
		}
		if got.status != 200 || got.body != first {
			t.Errorf("%s: got %d %s", name, got.status, got.body)
		}
	}
	n.desk.set(func() {
		for _, c := range n.desk.asked {
			if c != (sale.Change{Kind: sale.Pay, Order: id, Payment: "pay_1"}) {
				t.Errorf("asked for %+v", c)
			}
		}
		if len(n.desk.asked) != 6 {
			t.Errorf("asked %d times", len(n.desk.asked))
		}
		n.desk.asked = nil
	})
	for body, want := range map[string]string{
		``:                                   "400 MALFORMED_BODY body",
		`{"payment_id":"p"}`:                 "422 INVALID_FIELD order_id",
		`{"order_id":"` + anyID + `"}`:       "422 INVALID_FIELD payment_id",
		`{"payment_id":"p","order_id":"42"}`: "422 INVALID_FIELD order_id",
		`{"payment_id":"p","order_id":42}`:   "422 INVALID_FIELD order_id",
		`{"payment_id":"","order_id":"` + anyID + `"}`:                                 "422 INVALID_FIELD payment_id",
		`{"payment_id":"a\u0000b","order_id":"` + anyID + `"}`:                         "422 INVALID_FIELD payment_id",
		`{"payment_id":"` + strings.Repeat("p", 129) + `","order_id":"` + anyID + `"}`: "422 INVALID_FIELD payment_id",
		`{"payment_id":"p","order_id":"` + anyID + `","amount":1}`:                     "400 MALFORMED_BODY amount",
		`{"payment_id":"p","payment_id":"q","order_id":"` + anyID + `"}`:               "400 MALFORMED_BODY payment_id",
	} {
		got := send(t, "POST", n.publicURL()+"/v1/payments", body, signed(t, secretNow, "msg_1", testNow, body)...)
		p := readProblem(t, got)
		if have := strings.Join([]string{strconv.Itoa(got.status), p.Code, p.Field}, " "); have != want {
			t.Errorf("%s: got %s, want %s", body, have, want)
		}
	}
	n.desk.set(func() {
		if len(n.desk.asked) != 0 {
			t.Errorf("bad bodies reached the settlement: %v", n.desk.asked)
		}
	})
	n.buckets.set(func() {
		if len(n.buckets.addresses) != 0 {
			t.Errorf("callbacks paid into address buckets: %v", n.buckets.addresses)
		}
		n.buckets.noGlobal = true
	})
	if got := send(t, "POST", n.publicURL()+"/v1/payments", paymentBody, now...); got.status != 429 {
		t.Errorf("over the node's limit: %d %s", got.status, got.body)
	}
}

func TestPaymentsWithoutASecret(t *testing.T) {
	n := startNode(t, nil)
	got := send(t, "POST", n.publicURL()+"/v1/payments", paymentBody, signed(t, secretNow, "msg_1", testNow, paymentBody)...)
	if p := readProblem(t, got); got.status != 404 || p.Code != "PAYMENTS_DISABLED" {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestPaymentSecrets(t *testing.T) {
	for _, bad := range [][]string{
		{"whsec_"},
		{strings.TrimPrefix(secretNow, "whsec_")},
		{"whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 23)))},
		{"whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", 65)))},
		{"whsec_?" + secretNow[7:]},
		{secretNow, secretNext, secretElse},
		{secretNow, ""},
	} {
		cfg := DefaultConfig()
		cfg.PaymentSecrets = bad
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "paymentSecrets: ") {
			t.Errorf("%q: %v", bad, err)
		} else if len(bad[0]) > 6 && strings.Contains(err.Error(), bad[0][6:]) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// TestOutcomes checks what each outcome of a settlement looks like.
func TestOutcomes(t *testing.T) {
	n := startTill(t)
	closed := orderOf(sale.OrderClosed)
	closed.Reason = sale.ReasonPaymentTimeout
	pay := func() reply {
		return send(t, "POST", n.publicURL()+"/v1/payments", paymentBody, signed(t, secretNow, "m", testNow, paymentBody)...)
	}
	for _, tc := range []struct {
		settled sale.Settled
		err     error
		status  int
		says    []string
		retry   bool
	}{
		{sale.Settled{Outcome: sale.Already, Order: closed}, nil, 200, []string{`"state":"CLOSED","reason":"PAYMENT_TIMEOUT"`}, false},
		{sale.Settled{Outcome: sale.NoOrder}, nil, 404, []string{"ORDER_NOT_FOUND"}, false},
		{sale.Settled{Outcome: sale.StillQueued}, nil, 409, []string{"ORDER_QUEUED"}, true},
		{sale.Settled{Outcome: sale.IsPaid}, nil, 409, []string{"ORDER_PAID"}, false},
		{sale.Settled{Outcome: sale.RefundRequired, Order: closed}, nil, 409, []string{"REFUND_REQUIRED", `"reason":"PAYMENT_TIMEOUT"`}, false},
		{sale.Settled{Outcome: sale.PaymentReused}, nil, 409, []string{"PAYMENT_REUSED"}, false},
		{sale.Settled{}, sale.ErrQueueFull, 503, []string{"BUSY", "QUEUE_FULL"}, true},
		{sale.Settled{}, sale.ErrUnavailable, 503, []string{"BUSY", "DEPENDENCY"}, true},
		{sale.Settled{}, service.ErrOutcomeUnknown, 503, []string{"BUSY", `"outcome":"unknown"`, anyID}, true},
		{sale.Settled{Outcome: sale.NotDue}, nil, 500, []string{"INTERNAL"}, false},
	} {
		n.desk.set(func() { n.desk.settled, n.desk.err = tc.settled, tc.err })
		got := pay()
		if got.status != tc.status || (got.header.Get("Retry-After") != "") != tc.retry {
			t.Errorf("outcome %d, %v: got %d %v %s", tc.settled.Outcome, tc.err, got.status, got.header, got.body)
		}
		for _, text := range tc.says {
			if !strings.Contains(got.body, text) {
				t.Errorf("outcome %d, %v: %s lacks %s", tc.settled.Outcome, tc.err, got.body, text)
			}
		}
	}
}

func TestCancel(t *testing.T) {
	n := startTill(t)
	id, _ := sale.ParseOrderID(anyID)
	n.desk.set(func() {
		n.desk.settled = sale.Settled{Outcome: sale.Changed, Order: orderOf(sale.OrderClosed)}
		n.desk.order = orderOf(sale.OrderPaid)
	})
	buyers, operators := n.publicURL()+"/v1/orders/"+anyID+"/cancel", n.adminURL()+"/admin/v1/orders/"+anyID+"/cancel"
	for _, tc := range []struct {
		url, body string
		header    []string
		status    int
		want      sale.Change
	}{
		{buyers, "", []string{"X-Buyer-Id: u1"}, 200, sale.Change{Kind: sale.Cancel, Order: id, Buyer: "u1", Actor: "buyer"}},
		{buyers, "{}", []string{"X-Buyer-Id: u1"}, 200, sale.Change{Kind: sale.Cancel, Order: id, Buyer: "u1", Actor: "buyer"}},
		{buyers, `{"actor":"x"}`, []string{"X-Buyer-Id: u1"}, 400, sale.Change{}},
		{buyers, "", nil, 401, sale.Change{}},
		{n.publicURL() + "/v1/orders/42/cancel", "", []string{"X-Buyer-Id: u1"}, 400, sale.Change{}},
		{operators, "", nil, 200, sale.Change{Kind: sale.Cancel, Order: id, Actor: "ann-admin"}},
		{operators, `{"actor":"eve"}`, nil, 400, sale.Change{}},
		{operators, `{"reason":"x"}`, nil, 400, sale.Change{}},
	} {
		n.desk.set(func() { n.desk.asked = nil })
		got := send(t, "POST", tc.url, tc.body, tc.header...)
		var asked sale.Change
		n.desk.set(func() {
			if len(n.desk.asked) > 0 {
				asked = n.desk.asked[0]
			}
		})
		if got.status != tc.status || asked != tc.want {
			t.Errorf("%s %s: got %d %s, asked for %+v, want %d, %+v", tc.url, tc.body, got.status, got.body, asked, tc.status, tc.want)
		}
	}
	if got := send(t, "GET", n.adminURL()+"/admin/v1/orders/"+someID.String(), ""); got.status != 200 || !strings.Contains(got.body, `"buyer":"u1"`) {
		t.Errorf("an operator's look: %d %s", got.status, got.body)
	}
	if got := send(t, "GET", n.adminURL()+"/admin/v1/orders/"+anyID, ""); got.status != 404 {
		t.Errorf("an unknown order: %d %s", got.status, got.body)
	}
}

func letter(seq int64) sale.DeadLetter {
	id := someID
	return sale.DeadLetter{
		Seq: seq, MessageID: "m", SKU: "demo", Order: &id, Error: "quantity: too large", Source: "stockade.order.create",
		ContentType: "application/json", Body: []byte("{}"), State: sale.DeadOpen, Attempts: 1, At: testNow,
	}
}

func TestDeadLetters(t *testing.T) {
	n := startNode(t, nil)
	n.desk.set(func() { n.desk.letters = []sale.DeadLetter{letter(1), letter(2), letter(3)} })
	base := n.adminURL() + "/admin/v1/dead"
	var page handler.DeadLetterPage
	got := send(t, "GET", base+"?limit=2&state=OPEN&sku=demo&after=7", "")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.DeadLetters) != 2 || page.Next != "2" {
		t.Errorf("a page: %d %s, %v", got.status, got.body, err)
	}
	n.desk.set(func() {
		if n.desk.filter != (sale.DeadFilter{State: sale.DeadOpen, SKU: "demo", After: 7, Limit: 2}) {
			t.Errorf("filter %+v", n.desk.filter)
		}
	})
	for query, field := range map[string]string{"state=open": "state", "sku=%7B": "sku", "after=x": "after", "after=-1": "after", "limit=201": "limit"} {
		got := send(t, "GET", base+"?"+query, "")
		if p := readProblem(t, got); got.status != 400 || p.Field != field {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	for _, tc := range []struct {
		method, path, body string
		err                error
		status             int
		says, did          string
	}{
		{"GET", "/2", "", nil, 200, `"body":"e30="`, ""},
		{"GET", "/9", "", nil, 404, "DEAD_LETTER_NOT_FOUND", ""},
		{"GET", "/x", "", nil, 400, "BAD_REQUEST", ""},
		{"POST", "/2/replay", "", nil, 200, `"seq":2`, "replay by ann-admin"},
		{"POST", "/2/drop", "", nil, 200, `"seq":2`, "drop by ann-admin"},
		{"POST", "/0/drop", "", nil, 400, "BAD_REQUEST", ""},
		{"POST", "/2/drop", "[]", nil, 400, "MALFORMED_BODY", ""},
		{"POST", "/2/replay", "", sale.ErrConflict, 409, "DEAD_LETTER_HANDLED", "replay by ann-admin"},
		{"POST", "/2/drop", "", service.ErrOutcomeUnknown, 503, `"outcome":"unknown","order_id":"` + someID.String(), "drop by ann-admin"},
		{"POST", "/2/replay", "", sale.ErrUnavailable, 503, "BUSY", "replay by ann-admin"},
	} {
		n.desk.set(func() { n.desk.deadErr, n.desk.handled = tc.err, nil })
		got := send(t, tc.method, base+tc.path, tc.body)
		n.desk.set(func() {
			if did := strings.Join(n.desk.handled, ""); got.status != tc.status || !strings.Contains(got.body, tc.says) || did != tc.did {
				t.Errorf("%s %s: got %d %s, did %q", tc.method, tc.path, got.status, got.body, did)
			}
		})
	}
}
