package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// flakyGate loses some of the answers to credits, and some of the requests.
type flakyGate struct {
	service.Gate
	lose      func() faultKind // of the next call
	meanwhile func()           // happens before the shares are asked and after they have answered
	credits   *creditLog
}

func (g flakyGate) Credit(ctx context.Context, credits []sale.Credit) ([]bool, error) {
	kind := g.lose()
	if kind == lostRequest {
		return nil, errInjected
	}
	g.meanwhile()
	applied, err := g.Gate.Credit(ctx, credits)
	g.credits.note(credits, applied)
	g.meanwhile()
	if kind == lostReply {
		return nil, errInjected
	}
	return applied, err
}

// creditLog knows which orders the shares have got back, on whatever node, and how many of them when a light reshare had
// counted the units already.
type creditLog struct {
	mu      sync.Mutex
	has     map[sale.OrderID]bool
	counted int
}

func newCreditLog() *creditLog { return &creditLog{has: map[sale.OrderID]bool{}} }

func (l *creditLog) note(credits []sale.Credit, applied []bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range credits {
		if i >= len(applied) || !applied[i] || l.has[c.Order] {
			continue
		}
		l.has[c.Order] = true
		if c.Counted {
			l.counted++
		}
	}
}

func noLoss() faultKind { return noFault }

// spy keeps which SKUs' flags were cleared and hinted.
type spy struct {
	service.Flags
	mu             sync.Mutex
	cleared, hints []string
}

func (s *spy) Clear(sku string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleared = append(s.cleared, sku)
}

func (s *spy) Send(_ context.Context, sku string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hints = append(s.hints, sku)
	return nil
}

// trap fails at one point, as often as it is armed for.
type trap struct {
	at    sale.Point
	armed atomic.Int64
	seen  atomic.Int64
}

func (f *trap) At(_ context.Context, p sale.Point) error {
	if p != f.at {
		return nil
	}
	f.seen.Add(1)
	if f.armed.Add(-1) >= 0 {
		return errInjected
	}
	return nil
}

// till is the settlement of a node.
type till struct {
	lab      *lab
	gate     *flakyGate
	spy      *spy
	trap     *trap
	creditor *service.Creditor
	settler  *service.Settler
	expirer  *service.Expirer
	paused   atomic.Bool
}

func newTill(l *lab, gate service.Gate, settlements service.Settlements) *till {
	log := slog.New(slog.DiscardHandler)
	s := &till{lab: l, gate: &flakyGate{gate, noLoss, func() {}, newCreditLog()}, spy: &spy{}, trap: &trap{}}
	s.creditor = service.NewCreditor(l.config, service.CreditorParts{
		Store: settlements, Ledgers: l.db, Gate: s.gate, Flags: s.spy, Hints: s.spy, Faults: s.trap, Log: log,
	})
	s.settler = service.NewSettler(l.config, settlements, l.db, s.creditor, s.trap, nil)
	s.expirer = service.NewExpirer(l.config, settlements, s.settler, s.paused.Load, log)
	return s
}

// open starts a till over a node of its own with one SKU on sale.
func openTill(t *testing.T, total int64, sku sale.SKU) (*till, *testNode, sale.SKU) {
	t.Helper()
	l := newLab(t)
	l.config.ExpiryPerSecond = 1_000_000
	return openTillIn(t, l, total, sku)
}

func openTillIn(t *testing.T, l *lab, total int64, sku sale.SKU) (*till, *testNode, sale.SKU) {
	t.Helper()
	gate := l.gate(t)
	n := l.node(gate)
	t.Cleanup(n.stop)
	sku.OpensAt = l.clock.Now()
	made, err := l.newSKU(t.Context(), n, total, sku)
	if err != nil {
		t.Fatal(err)
	}
	s := newTill(l, gate, l.db)
	t.Cleanup(s.settler.Close)
	return s, n, made
}

// buy buys one order and, when written, writes its order row as a consumer does.
func (s *till) buy(ctx context.Context, n *testNode, sku, buyer, key string, quantity int64, written bool) (sale.Order, error) {
	r, err := n.sales.Purchase(ctx, service.PurchaseRequest{SKU: sku, Buyer: buyer, Key: key, Quantity: quantity})
	if err == nil && r.Code == sale.Accepted && written && !r.Replayed {
		err = s.write(ctx, r.Order)
	}
	if err != nil || r.Code != sale.Accepted {
		return sale.Order{}, err
	}
	return r.Order, nil
}

func (s *till) write(ctx context.Context, orders ...sale.Order) error {
	refused, err := s.lab.db.InsertOrders(ctx, orders)
	for _, one := range refused {
		if err == nil {
			err = one
		}
	}
	return err
}

// mustBuy is buy for tests that need the order.
func (s *till) mustBuy(t *testing.T, n *testNode, sku, buyer string, quantity int64, written bool) sale.Order {
	t.Helper()
	o, err := s.buy(t.Context(), n, sku, buyer, "k", quantity, written)
	if err != nil || o.ID == (sale.OrderID{}) {
		t.Fatalf("%s got %+v, %v", buyer, o, err)
	}
	n.outcome()
	return o
}

// credited runs rounds until nothing is uncredited, and says what is left over when that does not help.
func (s *till) credited(ctx context.Context, sku string) error {
	for range 5 {
		if err := s.creditor.Round(ctx, 0); err != nil {
			return err
		}
		if units, err := s.lab.db.Uncredited(ctx, sku); err != nil || units == 0 {
			return err
		}
	}
	units, err := s.lab.db.Uncredited(ctx, sku)
	return errors.Join(err, fmt.Errorf("%d units are not credited", units))
}

// balance compares the gate and the rows with the ledger: no take is undecided and no restock on its way.
func (s *till) balance(ctx context.Context, sku string) error {
	listing, err := s.lab.db.Listing(ctx, sku)
	if err != nil {
		return err
	}
	figures, err := s.gate.Peek(ctx, sku, listing.Slots)
	if err != nil {
		return err
	}
	var left, pending int64
	for _, f := range figures {
		left, pending = left+f.Left, pending+f.Pending
	}
	books, err := s.lab.db.CheckLedger(ctx, sku)
	switch l := listing.Ledger; {
	case err != nil:
		return err
	case !books.Agrees():
		return fmt.Errorf("the rows do not bear the ledger out: %+v", books)
	case left != l.Available() || pending != 0:
		return fmt.Errorf("%d units left and %d pending in the gate, %d of %d promised: %+v", left, pending, l.Promised, l.Total, figures)
	}
	return nil
}

func (s *till) mustBalance(t *testing.T, sku string) {
	t.Helper()
	if err := s.balance(t.Context(), sku); err != nil {
		t.Error(err)
	}
}

// await polls until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
