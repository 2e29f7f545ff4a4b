package router

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stockade/biz/sale"
)

// scales fakes a node's load: so many requests may be in hand, and purchases are refused on a test's word.
type scales struct {
	most     atomic.Int64 // 0: any number
	inHand   atomic.Int64
	shedding atomic.Bool
}

func (s *scales) Enter() bool {
	n := s.inHand.Add(1)
	if most := s.most.Load(); most > 0 && n > most {
		s.inHand.Add(-1)
		return false
	}
	return true
}
func (s *scales) Leave()     { s.inHand.Add(-1) }
func (s *scales) Shed() bool { return s.shedding.Load() }

func wantOverload(t *testing.T, got reply) {
	t.Helper()
	if got.status != 503 || !strings.Contains(got.body, `"code":"BUSY"`) || !strings.Contains(got.body, `"reason":"OVERLOAD"`) {
		t.Errorf("got %d %s, want 503 BUSY, OVERLOAD", got.status, got.body)
	}
	if after, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || after < 1 || after > 2 {
		t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
	}
}

func TestRequestsInHandAreCapped(t *testing.T) {
	n := startNode(t, nil)
	hold := make(chan struct{})
	n.shop.set(func() { n.shop.hold = hold })
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() { n.buy(t, `{"quantity":1}`) })
	}
	eventually(t, "three purchases wait", func() bool { return n.shop.calls.Load() == 3 })
	if got := n.scales.inHand.Load(); got != 3 {
		t.Errorf("%d in hand, want 3", got)
	}
	n.scales.most.Store(3)
	wantOverload(t, n.buy(t, `{"quantity":1}`))
	wantOverload(t, send(t, "GET", n.publicURL()+"/v1/skus/demo", ""))
	wantOverload(t, send(t, "POST", n.publicURL()+"/v1/payments", "{}"))
	for _, url := range []string{n.publicURL() + "/livez", n.adminURL() + "/admin/v1/node"} {
		if got := send(t, "GET", url, ""); got.status != 200 {
			t.Errorf("%s: %d %s", url, got.status, got.body)
		}
	}
	close(hold)
	waiting.Wait()
	eventually(t, "all are counted out", func() bool { return n.scales.inHand.Load() == 0 })
	if got := n.results.Counts()[sale.Busy.String()]; got != 1 {
		t.Errorf("%d purchases counted as BUSY, want 1", got)
	}
}

func TestOverloadShedsPurchasesOnly(t *testing.T) {
	n := startNode(t, nil)
	n.scales.shedding.Store(true)
	wantOverload(t, n.buy(t, `{"quantity":1}`))
	if n.shop.calls.Load() != 0 {
		t.Error("a refused purchase reached the shop")
	}
	for _, path := range []string{"/v1/skus/demo", "/v1/orders"} {
		if got := send(t, "GET", n.publicURL()+path, "", "X-Buyer-Id: u1"); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := n.scales.inHand.Load(); got != 0 {
		t.Errorf("%d in hand", got)
	}
}

func TestPanicsAreCountedOut(t *testing.T) {
	n := startNode(t, nil)
	n.shop.set(func() { n.shop.panics = true })
	if got := n.buy(t, `{"quantity":1}`); got.status != 500 {
		t.Errorf("%d %s", got.status, got.body)
	}
	eventually(t, "it is counted out", func() bool { return n.scales.inHand.Load() == 0 })
}
