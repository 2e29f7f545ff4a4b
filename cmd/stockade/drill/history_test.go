//go:build services

package drill_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"stockade/biz/sale"
)

// kind is what a buyer asks for.
type kind int

const (
	buying kind = iota
	paying
	cancelling
	adjusting // of the total, by an operator
)

// request is one purchase, payment, cancel or change of a total; asked again, it is the same one.
type request struct {
	kind            kind
	sku, buyer, key string
	quantity        int64
}

// answer is what a node said, or what became of the connection.
type answer struct {
	Status   int    `json:"status"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Outcome  string `json:"outcome"`
	OrderID  string `json:"order_id"`
	State    string `json:"state"`
	OpensAt  string `json:"opens_at"`
	replayed bool
}

// Codes of ours, for requests that nobody answered.
const (
	noAnswer   = "NO_ANSWER"  // sent, perhaps; the connection failed or took too long
	unreached  = "UNREACHED"  // nobody listened: nothing was sent
	unknownly  = "unknown"    // Outcome of an answer whose order may turn out to exist
	unforeseen = "UNFORESEEN" // an answer that no purchase may get
)

func (a answer) String() string {
	return fmt.Sprintf("%d %s %s %s %s", a.Status, a.Code, a.Reason, a.Outcome, a.OrderID)
}

func (a answer) won() bool { return a.Code == sale.Accepted.String() }

// open tells whether the order may turn out to exist although the answer does not say so.
func (a answer) open() bool { return a.Code == noAnswer || a.Outcome == unknownly }

// verdict tells whether the answer is final.
func (a answer) verdict() bool {
	switch a.Code {
	case noAnswer, unreached, sale.Busy.String(), sale.Retry.String(), sale.RateLimited.String():
		return false
	}
	return true
}

// attempt is one call of a request, with the times around it, since the world began.
type attempt struct {
	request
	answer
	client         int
	call, returned time.Duration
}

// history is everything that buyers asked and heard.
type history struct {
	began time.Time

	mu       sync.Mutex
	attempts []attempt
	codes    map[string]int // by code, reason and outcome
	faults   []string       // answers that may never be given
}

func newHistory() *history { return &history{began: time.Now(), codes: map[string]int{}} }

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) add(a attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, a)
	name := a.Code
	if !a.verdict() && a.Reason != "" {
		name += "/" + a.Reason
	}
	if a.Outcome != "" {
		name += "/" + a.Outcome
	}
	h.codes[name]++
	if a.Code == unforeseen {
		h.faults = append(h.faults, fmt.Sprintf("%+v was answered %v", a.request, a.answer))
	}
}

// all is a copy of what was recorded so far.
func (h *history) all() []attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.attempts)
}

// wins counts what was accepted so far.
func (h *history) wins() int { return h.count(sale.Accepted.String()) }

// count counts the answers of a code, whatever their reason and outcome.
func (h *history) count(code string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, count := range h.codes {
		if name == code || strings.HasPrefix(name, code+"/") {
			n += count
		}
	}
	return n
}

// firstWin is how long after a moment the first purchase that was asked for later was accepted; ok is false when none was.
func (h *history) firstWin(after time.Duration) (d time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range slices.Backward(h.attempts) {
		if a.returned < after {
			break // they are in the order of their returns, nearly
		}
		if a.call >= after && a.won() && !a.replayed && (!ok || a.returned-after < d) {
			d, ok = a.returned-after, true
		}
	}
	return d, ok
}

// times are how long calls took that began after a moment and were answered, shortest first.
func (h *history) times(after time.Duration, of func(attempt) bool) (all []time.Duration) {
	for _, a := range h.all() {
		if a.call >= after && a.Code != unreached && of(a) {
			all = append(all, a.returned-a.call)
		}
	}
	slices.Sort(all)
	return all
}
