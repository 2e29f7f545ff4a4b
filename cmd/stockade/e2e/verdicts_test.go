//go:build services

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// counter is a shop's till that counts what it was told.
type counter struct {
	t      *testing.T
	node   *proctest.Node
	told   map[string]int64
	waits  map[string]map[string]bool // code → values of Retry-After
	buyers int
}

// wire is an answer with everything that a client sees of it.
type wire struct {
	status int
	header http.Header
	body   map[string]any
}

// once sends one purchase and holds its answer against the table of verdicts.
func (c *counter) once(sku, buyer string, quantity int) string {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.node.Public+"/v1/skus/"+sku+"/orders", strings.NewReader(fmt.Sprintf(`{"quantity":%d}`, quantity)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buyer-Id", buyer)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	w := wire{status: resp.StatusCode, header: resp.Header}
	if err := json.Unmarshal(text, &w.body); err != nil {
		c.t.Fatalf("%d %s", w.status, text)
	}
	code, _ := w.body["code"].(string)
	c.told[code]++
	c.check(code, w)
	return code
}

// verdict is how a code has to look on the wire.
type verdict struct {
	status int
	result float64
	again  bool // it may be asked again: Retry-After
}

var verdicts = map[string]verdict{
	accepted: {202, 1, false}, soldOut: {409, 0, false}, notOnSale: {409, -1, false}, limitReached: {409, -2, false},
	rateLimited: {429, -3, true}, busy: {503, -4, true}, retry: {503, -5, true},
}

func (c *counter) check(code string, w wire) {
	c.t.Helper()
	want, known := verdicts[code]
	if !known || w.status != want.status || w.body["result"] != want.result {
		c.t.Errorf("%s: status %d, result %v, want %+v", code, w.status, w.body["result"], want)
	}
	kind := "application/problem+json"
	if code == accepted {
		kind = "application/json"
	}
	if w.header.Get("Content-Type") != kind || w.header.Get("X-Request-Id") == "" {
		c.t.Errorf("%s: headers %v", code, w.header)
	}
	if code != accepted && (w.body["status"] != float64(w.status) || w.body["type"] != "/errors/"+code || w.body["request_id"] != w.header.Get("X-Request-Id")) {
		c.t.Errorf("%s: problem %v", code, w.body)
	}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		if _, err := strconv.Atoi(w.header.Get(name)); err != nil {
			c.t.Errorf("%s: %s is %q", code, name, w.header.Get(name))
		}
	}
	wait := w.header.Get("Retry-After")
	if n, err := strconv.Atoi(wait); want.again && (err != nil || n < 1 || n > 3) || !want.again && wait != "" {
		c.t.Errorf("%s: Retry-After %q", code, wait)
	}
	if c.waits[code] == nil {
		c.waits[code] = map[string]bool{}
	}
	c.waits[code][wait] = true
}

// newcomer is a buyer whose bucket is full.
func (c *counter) newcomer() string {
	c.buyers++
	return fmt.Sprint("newcomer-", c.buyers)
}

// until asks with newcomers until one is told a code.
func (c *counter) until(sku, code string) {
	c.t.Helper()
	var last string
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if last = c.once(sku, c.newcomer(), 1); last == code {
			return
		}
	}
	c.t.Fatalf("%s: nobody was told %s, the last one was %s", sku, code, last)
}

// jittered asks until the waits that a code tells differ, so that those who were refused together do not come together.
func (c *counter) jittered(code string, ask func() string) {
	c.t.Helper()
	for end := time.Now().Add(15 * time.Second); len(c.waits[code]) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s always has Retry-After %v", code, c.waits[code])
		}
		ask()
	}
}

func (c *counter) results() map[string]int64 {
	c.t.Helper()
	var n handler.NodeJSON
	if err := c.node.Read("/admin/v1/node", &n); err != nil {
		c.t.Fatal(err)
	}
	return n.Results
}

// Every result of a purchase reaches its client as itself, with its own number, status and headers, and is counted apart.
func TestEachResultReachesTheClientAndIsCountedApart(t *testing.T) {
	n := startNode(t, "v", "limiter.buyerPerSecond=1", "limiter.buyerBurst=3", "service.mysqlPathRate=1")
	c := &counter{t: t, node: n, told: map[string]int64{}, waits: map[string]map[string]bool{}}
	create := func(flags ...string) string {
		t.Helper()
		sku := fmt.Sprintf("%s.%d", t.Name()[:20], shop.skus.Add(1))
		n.CLI(append([]string{"sku", "create", sku, "--limit", "2"}, flags...)...)
		return sku
	}
	if before := c.results(); len(before) != len(sale.Codes) {
		t.Errorf("a fresh node counts %v, want every code", before)
	}

	plenty := create("--total", "1000", "--open")
	c.until(plenty, accepted)
	if got := c.once(plenty, c.newcomer(), 3); got != limitReached {
		t.Errorf("more than the limit: %s", got)
	}
	hasty := func() string { return c.once(plenty, "hasty", 2) }
	for range 3 {
		hasty()
	}
	c.jittered(rateLimited, hasty)

	c.until(create("--total", "1", "--slots", "1", "--open"), soldOut)

	later := create("--total", "10", "--opens-at", "2999-01-01T00:00:00Z", "--open")
	if got := c.once(later, c.newcomer(), 1); got != notOnSale {
		t.Errorf("before the sale: %s", got)
	}

	past := create("--total", "1000", "--open")
	n.CLI("sku", "path", past, "mysql")
	c.until(past, busy)
	c.jittered(busy, func() string { return c.once(past, c.newcomer(), 1) })

	for name, value := range map[string]string{sale.ToggleReshare: sale.WorkPauses, sale.ToggleFallback: sale.SwitchOff} {
		n.CLI("toggle", "set", name, value, "--reason", "test", "--for", "60s")
		t.Cleanup(func() {
			kind, _ := sale.ToggleKindOf(name)
			n.CLI("toggle", "set", name, kind.Default(), "--reason", "test is over")
		})
	}
	elsewhere := create("--total", "8", "--slots", "1", "--reserve-pct", "50", "--open")
	c.until(elsewhere, retry)
	c.jittered(retry, func() string { return c.once(elsewhere, c.newcomer(), 1) })

	for code := range verdicts {
		if c.told[code] == 0 {
			t.Errorf("nobody was told %s", code)
		}
	}
	for code, counted := range c.results() {
		if counted != c.told[code] {
			t.Errorf("%s: the node counts %d, its clients were told %d", code, counted, c.told[code])
		}
	}
	t.Logf("told and counted: %v", c.told)
}
