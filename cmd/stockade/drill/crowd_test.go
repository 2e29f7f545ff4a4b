//go:build services

package drill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// The crowd of every drill.
const (
	buyers        = 64
	askBound      = 10 * time.Second // of one call; a node answers within its purchase timeout
	retryPause    = 100 * time.Millisecond
	usualPace     = 250 * time.Millisecond // a buyer's longest pause between two purchases, half of it on average
	recoveryGrace = 20 * time.Second       // to learn how much too late
	keylessOneIn  = 20
	againOneIn    = 8               // wins that are asked again later
	greedyOneIn   = 8               // buyers who come back with another key
	patience      = 2 * time.Second // with what is not a purchase of its own: it may have no verdict while MySQL is away
)

// crowd is 64 buyers who go on until they are told to stop.
type crowd struct {
	w      *world
	h      *history
	client *http.Client
	over   atomic.Bool
	all    sync.WaitGroup
	found  []figures  // of each SKU, after the audit
	hand   sync.Mutex // held while a total changes by hand

	mayClose  atomic.Bool // NOT_ON_SALE is an answer that buyers may get
	strangers int         // who asked outside the history
}

// open lets the buyers in. They choose among the SKUs evenly. The sale ends with the test, at the latest.
func (w *world) open(skus ...*sku) *crowd {
	c := w.newCrowd()
	seed := rand.Uint64()
	w.t.Logf("seed %d", seed)
	for i := range buyers {
		b := &buyer{crowd: c, id: i, rng: rand.New(rand.NewPCG(seed, uint64(i))), skus: skus}
		c.all.Go(b.shop)
	}
	w.t.Cleanup(c.close)
	return c
}

func (w *world) newCrowd() *crowd {
	return &crowd{w: w, h: newHistory(), client: &http.Client{
		Timeout:   askBound,
		Transport: &http.Transport{MaxIdleConns: 4 * buyers, MaxIdleConnsPerHost: buyers},
	}}
}

// close ends the sale and waits for the last answers.
func (c *crowd) close() {
	c.over.Store(true)
	c.all.Wait()
	c.client.CloseIdleConnections()
}

// awaitWins waits until so many more purchases are accepted: the sale goes on.
func (c *crowd) awaitWins(more int, bound time.Duration) time.Duration {
	c.w.t.Helper()
	goal := c.h.wins() + more
	return eventually(c.w.t, bound, fmt.Sprintf("%d more purchases accepted", more), func() bool { return c.h.wins() >= goal })
}

// awaitRecovery waits until a purchase that was asked for after a moment is accepted, and holds how long that took against
// its bound.
func (c *crowd) awaitRecovery(what string, after, bound time.Duration) {
	c.w.t.Helper()
	var took time.Duration
	eventually(c.w.t, bound+recoveryGrace, what+" to sell again", func() (ok bool) {
		took, ok = c.h.firstWin(after)
		return ok
	})
	c.w.t.Logf("%s: sold again after %v, bound %v", what, took.Round(time.Millisecond), bound)
	if took > bound {
		c.w.t.Errorf("%s: sold again after %v, want at most %v", what, took, bound)
	}
}

// ask sends a purchase to a node, once, and records what came of it.
func (c *crowd) ask(client int, n *proctest.Node, r request) answer {
	call := c.h.now()
	a := c.send(n.Public, r)
	c.h.add(attempt{request: r, answer: a, client: client, call: call, returned: c.h.now()})
	return a
}

func (c *crowd) send(base string, r request) answer {
	return c.sendTo(base+"/v1/skus/"+r.sku+"/orders", r, fmt.Sprintf(`{"quantity":%d}`, r.quantity))
}

// sendTo sends a body for a buyer, and the key if there is one.
func (c *crowd) sendTo(url string, r request, body string) answer {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{Code: unforeseen, Reason: err.Error()}
	}
	req.GetBody = nil // the transport would send a keyed purchase again by itself, and nobody would know of the first time
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buyer-Id", r.buyer)
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	resp, err := c.client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return answer{Code: unreached}
	}
	if err != nil {
		return answer{Code: noAnswer}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return answer{Code: noAnswer}
	}
	a := answer{}
	known := json.Unmarshal(text, &a) == nil && (purchaseCodes[a.Code] || a.Code == sale.NotOnSale.String() && c.mayClose.Load())
	if !known {
		return answer{Status: resp.StatusCode, Code: unforeseen, Reason: string(text)}
	}
	a.Status, a.replayed = resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
	if a.Status >= 500 && a.Code != sale.Busy.String() && a.Code != sale.Retry.String() {
		a.Code = unforeseen
	}
	return a
}

// purchaseCodes are the codes that a correct purchase may get.
var purchaseCodes = map[string]bool{
	sale.Accepted.String(): true, sale.SoldOut.String(): true, sale.LimitReached.String(): true,
	sale.Busy.String(): true, sale.Retry.String(): true,
}

// buyer is one of the crowd: one call at a time, at a pace of its own.
type buyer struct {
	*crowd
	id   int
	rng  *rand.Rand
	skus []*sku
	won  []request // purchases to ask for again
}

func (b *buyer) shop() {
	for n := 0; !b.over.Load(); n++ {
		s := b.skus[b.rng.IntN(len(b.skus))]
		r := request{sku: s.name, buyer: fmt.Sprintf("b%d-%d", b.id, n), key: "k", quantity: 1 + b.rng.Int64N(s.limit)}
		if b.rng.IntN(keylessOneIn) == 0 {
			r.key = ""
		}
		a := b.insist(r)
		if a.won() && r.key != "" && b.rng.IntN(againOneIn) == 0 {
			b.won = append(b.won, r)
		}
		if b.rng.IntN(greedyOneIn) == 0 {
			b.tryFor(patience, request{sku: r.sku, buyer: r.buyer, key: "k2", quantity: r.quantity})
		}
		if len(b.won) > 0 && b.rng.IntN(againOneIn) == 0 {
			b.tryFor(patience, b.won[b.rng.IntN(len(b.won))])
		}
		pass(time.Duration(b.rng.Int64N(int64(b.w.pace))))
	}
}

// insist asks until there is a verdict or the sale is over.
func (b *buyer) insist(r request) answer { return b.tryFor(math.MaxInt64, r) }

// tryFor asks until there is a verdict, the sale is over, or the buyer has had enough of it. Without a key every call is
// another purchase, so there is only one.
func (b *buyer) tryFor(d time.Duration, r request) answer {
	begun := time.Now()
	for {
		a := b.ask(b.id, b.w.any(b.rng), r)
		if a.verdict() || b.over.Load() || time.Since(begun) > d || (r.key == "" && a.Code != unreached) {
			return a
		}
		pass(retryPause/2 + time.Duration(b.rng.Int64N(int64(retryPause))))
	}
}

// mopUp sells what is left of a SKU, one unit to one new buyer after the other, until SOLD_OUT. It returns how long the
// last purchase that was neither accepted nor refused took to become so.
func (c *crowd) mopUp(t *testing.T, s *sku) (slowest time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 0; ; n++ {
		r := request{sku: s.name, buyer: fmt.Sprintf("late-%d", n), key: "k", quantity: 1}
		begun := time.Now()
		var a answer
		for a = c.ask(buyers, c.w.any(rng), r); !a.verdict(); a = c.ask(buyers, c.w.any(rng), r) {
			if time.Since(begun) > strandedBound {
				t.Errorf("%s: %v for %v: units are stranded", s.name, a, strandedBound)
				return strandedBound
			}
			pass(retryPause)
		}
		slowest = max(slowest, time.Since(begun))
		if !a.won() {
			return slowest
		}
	}
}
