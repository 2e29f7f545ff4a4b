//go:build services

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// Codes of answers. noAnswer is ours, for a request whose connection failed.
var (
	accepted     = sale.Accepted.String()
	soldOut      = sale.SoldOut.String()
	notOnSale    = sale.NotOnSale.String()
	limitReached = sale.LimitReached.String()
	rateLimited  = sale.RateLimited.String()
	busy         = sale.Busy.String()
	retry        = sale.Retry.String()
)

const noAnswer = "NO_ANSWER"

// byToken begins a request's key when it is a purchase token.
const byToken = "token:"

// Bounds of one buyer.
const (
	requestBound = 20 * time.Second
	tryPause     = 50 * time.Millisecond
	manyTries    = 200
)

// request is one purchase; asked again, it is the same one.
type request struct {
	sku, buyer, key string
	quantity        int64
}

// answer is what a node said to a request.
type answer struct {
	Status   int       `json:"status"`
	Code     string    `json:"code"`
	Reason   string    `json:"reason"`
	Outcome  string    `json:"outcome"`
	OrderID  string    `json:"order_id"`
	State    string    `json:"state"`
	Limit    int64     `json:"limit"`
	OpensAt  time.Time `json:"opens_at"`
	replayed bool
}

func (a answer) String() string {
	text := fmt.Sprintf("%d %s %s", a.Status, a.Code, a.Reason)
	if a.OrderID != "" {
		text += fmt.Sprintf(" (%s %s)", a.OrderID, a.Outcome)
	}
	return text
}

// verdict tells whether the answer is final.
func (a answer) verdict() bool {
	return a.Code != retry && a.Code != busy && a.Code != rateLimited && a.Code != noAnswer
}

// pair is two nodes side by side, and what their buyers were told.
type pair struct {
	t      *testing.T
	client *http.Client
	told   told

	newcomers int // made so far, for their names

	mu    sync.Mutex
	nodes [2]*proctest.Node
}

// startPair starts two nodes at the same time, each with the same settings.
func startPair(t *testing.T, settings ...string) *pair {
	t.Helper()
	return startUnlike(t, settings, settings)
}

// startUnlike starts two nodes with settings of their own.
func startUnlike(t *testing.T, first, second []string) *pair {
	t.Helper()
	p := &pair{t: t, told: newTold()}
	p.client = &http.Client{
		Timeout:   requestBound,
		Transport: &http.Transport{MaxIdleConns: 2048, MaxIdleConnsPerHost: 1024},
	}
	p.nodes = [2]*proctest.Node{launchNode(t, "a", first...), launchNode(t, "b", second...)}
	p.nodes[0].AwaitReady()
	p.nodes[1].AwaitReady()
	t.Cleanup(p.client.CloseIdleConnections) // before the nodes stop, which wait for connections
	return p
}

func (p *pair) node(i int) *proctest.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[i]
}

func (p *pair) replace(i int, n *proctest.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[i] = n
}

// survivor is a node that runs.
func (p *pair) survivor() *proctest.Node {
	if n := p.node(0); n.Alive() {
		return n
	}
	return p.node(1)
}

// ask sends a request to a node, once, and remembers what was told.
func (p *pair) ask(i int, r request) answer {
	a := p.send(p.node(i).Public, r)
	p.told.add(r, a)
	return a
}

func (p *pair) send(base string, r request) answer {
	lost := answer{Code: noAnswer}
	body := strings.NewReader(fmt.Sprintf(`{"quantity":%d}`, r.quantity))
	req, err := http.NewRequest(http.MethodPost, base+"/v1/skus/"+r.sku+"/orders", body)
	if err != nil {
		p.t.Errorf("request: %v", err)
		return lost
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buyer-Id", r.buyer)
	if token, ok := strings.CutPrefix(r.key, byToken); ok {
		req.Header.Set("Purchase-Token", token)
	} else if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return lost
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return lost
	}
	a := answer{replayed: resp.Header.Get("Idempotent-Replayed") == "true"}
	if err := json.Unmarshal(text, &a); err != nil || a.Code == "" {
		p.t.Errorf("purchase answered %s: %q", resp.Status, text)
		return lost
	}
	a.Status = resp.StatusCode
	return a
}

// buy asks until there is a verdict, at most tries times. at chooses the node of each try.
func (p *pair) buy(r request, tries int, at func() int) answer {
	var a answer
	for try := range tries {
		if try > 0 {
			<-time.After(tryPause)
		}
		if a = p.ask(at(), r); a.verdict() {
			break
		}
	}
	return a
}

// always is a node chooser that does not choose.
func always(i int) func() int { return func() int { return i } }

// order asks a node for a buyer's order; ok is false when there is no such order.
func (p *pair) order(n *proctest.Node, buyer, id string) (o sale.Order, ok bool) {
	req, err := http.NewRequest(http.MethodGet, n.Public+"/v1/orders/"+id, nil)
	if err != nil {
		p.t.Errorf("request: %v", err)
		return o, false
	}
	req.Header.Set("X-Buyer-Id", buyer)
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Errorf("order %s: %v", id, err)
		return o, false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body)
		return o, false
	}
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil {
		p.t.Errorf("order %s: %v", id, err)
		return o, false
	}
	return o, true
}

// atOnce calls f for 0 to n−1 at the same time and returns when all have returned.
func atOnce(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// eventually polls until ok, and fails the test when that takes longer than bound. It returns how long it took.
func eventually(t *testing.T, bound time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > bound {
			t.Fatalf("not within %v: %s", bound, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}
