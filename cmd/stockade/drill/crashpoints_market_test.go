//go:build services

package drill_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// The sale of the walk.
const (
	walkers    = 16
	walkPace   = 100 * time.Millisecond // between two purchases of one buyer, at most
	walkWindow = time.Second
	walkTotal  = 3000
	walkSlots  = 3
	walkSecret = "whsec_Y3Jhc2gtcG9pbnRzLWNyYXNoLXBvaW50cy1jcmFzaA=="
	changeTry  = 100 * time.Millisecond // between two tries to pay or to cancel
	changeTill = 3 * time.Second
)

// market is where the walk's buyers are: all at the stall that is open.
type market struct {
	*crowd
	current atomic.Pointer[stall]
	opened  int
}

// stall is the sale of one SKU, during which one action happens at one point.
type stall struct {
	point  sale.Point
	action proctest.FaultAction
	sku    *sku
	busy   atomic.Int64 // buyers who have not left
	eager  atomic.Bool  // orders are accepted before MySQL has them, and until then only polls that name the SKU find them
	wins   atomic.Int64
	ended  time.Time // when nobody came any more

	mu    sync.Mutex
	told  map[string]sale.OrderState // what buyers were told of their orders at last
	wrong []string
	truth truth
}

func openMarket(w *walk) *market {
	m := &market{crowd: w.newCrowd()}
	seed := rand.Uint64()
	w.t.Logf("seed %d", seed)
	w.t.Cleanup(m.close)
	for i := range walkers {
		b := &walker{market: m, id: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		m.all.Go(b.shop)
	}
	return m
}

// open puts a new SKU on sale and sends everybody there.
func (m *market) open(p sale.Point, action proctest.FaultAction) *stall {
	m.w.t.Helper()
	m.opened++
	s := &stall{point: p, action: action, told: map[string]sale.OrderState{}}
	s.sku = &sku{name: fmt.Sprintf("%s.%d", m.w.name, m.opened), total: walkTotal, limit: 2}
	m.must(http.MethodPost, "/admin/v1/skus", map[string]any{
		"sku": s.sku.name, "total": s.sku.total, "limit": s.sku.limit, "slots": walkSlots, "payment_window": walkWindow.String(),
	})
	m.must(http.MethodPost, "/admin/v1/skus/"+s.sku.name+"/load", nil)
	m.must(http.MethodPost, "/admin/v1/skus/"+s.sku.name+"/open", nil)
	if before := m.current.Swap(s); before != nil {
		before.ended = time.Now()
	}
	return s
}

// must asks a node that runs to do something as an operator.
func (m *market) must(method, path string, body any) []byte {
	m.w.t.Helper()
	var answer []byte
	var err error
	eventually(m.w.t, reachBound, method+" "+path, func() bool {
		answer, err = m.operate(m.w.survivor(), method, path, body)
		return err == nil
	})
	return answer
}

// operate is one call of the admin API.
func (m *market) operate(n *proctest.Node, method, path string, body any) ([]byte, error) {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	req, err := http.NewRequest(method, n.Admin+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	proctest.AsAdmin(req)
	return m.do(req)
}

func (m *market) do(req *http.Request) ([]byte, error) {
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %s", req.Method, req.URL.Path, resp.StatusCode, answer)
	}
	return answer, err
}

// awaitWins waits until so many more purchases are accepted at a stall.
func (s *stall) awaitWins(w *walk, more int64, bound time.Duration) {
	w.t.Helper()
	goal := s.wins.Load() + more
	what := fmt.Sprintf("%s at %s: %d more purchases accepted", s.action, s.point, more)
	eventually(w.t, bound, what, func() bool { return s.wins.Load() >= goal })
}

// walker is one of the market's buyers: one call at a time.
type walker struct {
	*market
	id  int
	rng *rand.Rand
}

func (b *walker) shop() {
	for n := 0; !b.over.Load(); n++ {
		if s := b.current.Load(); s != nil {
			s.busy.Add(1)
			if b.current.Load() == s { // else it may be under audit already
				b.visit(s, n)
			}
			s.busy.Add(-1)
		}
		pass(time.Duration(b.rng.Int64N(int64(walkPace))))
	}
}

// visit buys, and pays, cancels, or lets the order expire. One purchase in four has no key and is asked for once.
func (b *walker) visit(s *stall, n int) {
	r := request{sku: s.sku.name, buyer: fmt.Sprintf("w%d-%d", b.id, n), key: "k", quantity: 1 + b.rng.Int64N(s.sku.limit)}
	if b.rng.IntN(4) == 0 {
		r.key = ""
	}
	a := b.insist(s, r)
	if !a.won() {
		return
	}
	switch b.rng.IntN(4) {
	case 0:
		b.change(s, a.OrderID, paying, r.buyer)
	case 1:
		b.change(s, a.OrderID, cancelling, r.buyer)
	case 2:
		if r.key != "" {
			b.insist(s, r)
			r.key = "k2"
			b.insist(s, r)
		}
	}
}

func (b *walker) insist(s *stall, r request) answer {
	for {
		a := b.ask(b.id, b.w.any(b.rng), r)
		if a.won() && !a.replayed {
			s.wins.Add(1)
		}
		if a.verdict() || b.over.Load() || b.current.Load() != s || (r.key == "" && a.Code != unreached) {
			return a
		}
		pass(retryPause/2 + time.Duration(b.rng.Int64N(int64(retryPause))))
	}
}

// change pays or cancels an order, again while the answer is none, and remembers what it was told.
func (b *walker) change(s *stall, id string, what kind, buyer string) {
	for deadline := time.Now().Add(changeTill); time.Now().Before(deadline) && !b.over.Load(); pass(changeTry) {
		a, err := b.changeOnce(id, what, buyer)
		switch {
		case err != nil, a.Code == "ORDER_QUEUED", a.Code == sale.Busy.String(), a.Code == "ORDER_NOT_FOUND" && s.eager.Load():
			continue
		case a.Code == "REFUND_REQUIRED":
			s.note(id, sale.OrderClosed)
		case a.Code == "ORDER_PAID":
			s.note(id, sale.OrderPaid)
		case a.State == string(sale.OrderPaid) && what == paying, a.State == string(sale.OrderClosed) && what == cancelling:
			s.note(id, sale.OrderState(a.State))
		default:
			s.mu.Lock()
			s.wrong = append(s.wrong, fmt.Sprintf("change %d of order %s: answered %v, state %q", what, id, a, a.State))
			s.mu.Unlock()
		}
		return
	}
}

func (b *walker) changeOnce(id string, what kind, buyer string) (a answer, err error) {
	path, text := "/v1/orders/"+id+"/cancel", []byte("{}")
	if what == paying {
		path, text = "/v1/payments", fmt.Appendf(nil, `{"payment_id":"pay-%s","order_id":%q}`, id, id)
	}
	req, err := http.NewRequest(http.MethodPost, b.w.any(b.rng).Public+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buyer-Id", buyer)
	if what == paying {
		signed, err := handler.SignWebhook(walkSecret, "msg-"+id, time.Now(), text)
		if err != nil {
			return a, err
		}
		for i := 0; i < len(signed); i += 2 {
			req.Header.Set(signed[i], signed[i+1])
		}
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return a, errors.Join(err, json.Unmarshal(body, &a))
}

// note remembers what a buyer was told of an order. PAID and CLOSED are for good.
func (s *stall) note(id string, state sale.OrderState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, told := s.told[id]; told && before != state {
		s.wrong = append(s.wrong, fmt.Sprintf("order %s was %s, then %s", id, before, state))
	}
	s.told[id] = state
}
