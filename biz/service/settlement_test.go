package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// want checks the outcome of one change.
func want(t *testing.T, what string, done sale.Settled, err error, outcome sale.ChangeOutcome, state sale.OrderState, reason sale.Reason) {
	t.Helper()
	if err != nil || done.Outcome != outcome || done.Order.State != state || done.Order.Reason != reason {
		t.Errorf("%s: %+v, %v, want outcome %d, %s %s", what, done, err, outcome, state, reason)
	}
}

func TestSettlement(t *testing.T) {
	s, n, sku := openTill(t, 20, sale.SKU{Limit: 5, Slots: 2, ReservePct: 10})
	ctx := t.Context()
	paid := s.mustBuy(t, n, sku.ID, "ann", 2, true)
	left := s.mustBuy(t, n, sku.ID, "bob", 3, true)
	queued := s.mustBuy(t, n, sku.ID, "cy", 1, false)

	done, err := s.settler.Pay(ctx, paid.ID, "p1")
	want(t, "pay", done, err, sale.Changed, sale.OrderPaid, "")
	done, err = s.settler.Pay(ctx, paid.ID, "p1")
	want(t, "the same payment", done, err, sale.Already, sale.OrderPaid, "")
	done, err = s.settler.Pay(ctx, paid.ID, "p2")
	want(t, "another payment", done, err, sale.RefundRequired, sale.OrderPaid, "")
	if done, err = s.settler.Pay(ctx, left.ID, "p1"); err != nil || done.Outcome != sale.PaymentReused {
		t.Errorf("a payment of another order: %+v, %v", done, err)
	}
	done, err = s.settler.Cancel(ctx, paid.ID, "ann", "buyer")
	want(t, "cancel of a paid order", done, err, sale.IsPaid, sale.OrderPaid, "")
	if done, err = s.settler.Cancel(ctx, left.ID, "ann", "buyer"); err != nil || done.Outcome != sale.NoOrder || done.Order.Buyer != "" {
		t.Errorf("cancel of somebody else's order: %+v, %v", done, err)
	}
	if done, err = s.settler.Cancel(ctx, queued.ID, "cy", "buyer"); err != nil || done.Outcome != sale.StillQueued {
		t.Errorf("cancel of a queued order: %+v, %v", done, err)
	}
	done, err = s.settler.Cancel(ctx, left.ID, "bob", "buyer")
	want(t, "cancel", done, err, sale.Changed, sale.OrderClosed, sale.ReasonCancelled)
	done, err = s.settler.Cancel(ctx, left.ID, "", "operator")
	want(t, "cancel again", done, err, sale.Already, sale.OrderClosed, sale.ReasonCancelled)
	done, err = s.settler.Pay(ctx, left.ID, "p3")
	want(t, "a late payment", done, err, sale.RefundRequired, sale.OrderClosed, sale.ReasonCancelled)
	done, err = s.settler.Compensate(ctx, queued.ID, "dead letter")
	want(t, "compensate", done, err, sale.Changed, sale.OrderClosed, sale.ReasonCompensated)
	if err := s.write(ctx, queued); err != nil { // its message arrives after all
		t.Error(err)
	}
	for _, o := range []sale.Order{paid, left, queued} {
		seen, err := n.sales.Order(ctx, o.Buyer, o.ID)
		any, anyErr := s.settler.AnyOrder(ctx, o.ID)
		if err != nil || anyErr != nil || seen != any || (o == paid) != (seen.State == sale.OrderPaid) || (o == paid) != (seen.Reason == "") {
			t.Errorf("order of %s: %+v and %+v, %v, %v", o.Buyer, seen, any, err, anyErr)
		}
	}
	if _, err := s.settler.AnyOrder(ctx, sale.OrderID{1}); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("an unknown order: %v", err)
	}
	if err := s.credited(ctx, sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
}

// What was closed is sold again, at once, by way of the queue and not of the sweeper; flags are cleared once.
func TestClosedUnitsAreSoldAgain(t *testing.T) {
	s, n, sku := openTill(t, 6, sale.SKU{Limit: 2, Slots: 1})
	var orders []sale.Order
	for i := range 3 {
		orders = append(orders, s.mustBuy(t, n, sku.ID, fmt.Sprint("buyer-", i), 2, true))
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.creditor.Run(ctx) })
	defer running.Wait()
	defer stop()
	for _, o := range orders {
		if done, err := s.settler.Cancel(t.Context(), o.ID, o.Buyer, "buyer"); err != nil || done.Outcome != sale.Changed {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	await(t, "every unit is back in the gate", func() bool { return s.balance(t.Context(), sku.ID) == nil })
	await(t, "every restock is noted", func() bool {
		units, err := s.lab.db.Uncredited(t.Context(), sku.ID)
		return err == nil && units == 0
	})
	s.spy.mu.Lock()
	if len(s.spy.cleared) == 0 || len(s.spy.cleared) > 3 || len(s.spy.cleared) != len(s.spy.hints) {
		t.Errorf("cleared %v, hinted %v", s.spy.cleared, s.spy.hints)
	}
	s.spy.mu.Unlock()
	n.catalogue.Forget(sku.ID)
	for i := range 3 {
		s.mustBuy(t, n, sku.ID, fmt.Sprint("next-", i), 2, true)
	}
}

// An order that was taken in the reserve is credited where it lies now: at its buyer's home behind a full reshare, which
// also counts it there, and in the reserve behind a light one.
func TestCreditGoesWhereTheOrderWasLaid(t *testing.T) {
	for _, full := range []bool{true, false} {
		t.Run(fmt.Sprint("full ", full), func(t *testing.T) {
			s, n, sku := openTill(t, 8, sale.SKU{Limit: 2, Slots: 1, ReservePct: 50})
			ctx := t.Context()
			left := func() (home, reserve int64) {
				t.Helper()
				figures, err := s.gate.Peek(ctx, sku.ID, sku.Slots)
				if err != nil {
					t.Fatal(err)
				}
				return figures[0].Left, figures[1].Left
			}
			s.mustBuy(t, n, sku.ID, "bob", 2, true)
			s.mustBuy(t, n, sku.ID, "cy", 2, true)
			o := s.mustBuy(t, n, sku.ID, "ann", 2, true)
			if home, reserve := left(); home != 0 || reserve != 2 {
				t.Fatalf("%d and %d left, want none at home and 2 in the reserve", home, reserve)
			}
			if err := n.resharer.Run(ctx, sku.ID, service.ReshareOrder{Reason: "test", Full: full}); err != nil {
				t.Fatal(err)
			}
			n.catalogue.Forget(sku.ID)
			wantHome, wantReserve := left()
			if full {
				wantHome += 2
			} else {
				wantReserve += 2
			}
			if done, err := s.settler.Cancel(ctx, o.ID, "ann", "buyer"); err != nil || done.Outcome != sale.Changed {
				t.Fatalf("%+v, %v", done, err)
			}
			if err := s.credited(ctx, sku.ID); err != nil {
				t.Error(err)
			}
			if home, reserve := left(); home != wantHome || reserve != wantReserve {
				t.Errorf("%d and %d left, want %d at home and %d in the reserve", home, reserve, wantHome, wantReserve)
			}
			s.mustBalance(t, sku.ID)

			// Nobody counts the closed order any more: its buyer may have as much as anybody else, and no more.
			for i := range 3 {
				r, err := n.sales.Purchase(ctx, service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: fmt.Sprint("next-", i), Quantity: 1})
				n.outcome()
				if want := []sale.Code{sale.Accepted, sale.Accepted, sale.LimitReached}[i]; err != nil || r.Code != want {
					t.Errorf("purchase %d of the same buyer: %s %s, %v, want %s", i+1, r.Code, r.Reason, err, want)
				}
			}
			s.mustBalance(t, sku.ID)
		})
	}
}

// stuckLedgers says of one SKU that a reshare is under way.
type stuckLedgers struct {
	service.Ledgers
	sku string
}

func (s stuckLedgers) Listing(ctx context.Context, sku string) (sale.Listing, error) {
	l, err := s.Ledgers.Listing(ctx, sku)
	if sku == s.sku {
		l.Ledger.LiveEpoch--
	}
	return l, err
}

// countingGate keeps how many credits each call had.
type countingGate struct {
	service.Gate
	mu    sync.Mutex
	calls []int
}

func (g *countingGate) Credit(ctx context.Context, credits []sale.Credit) ([]bool, error) {
	g.mu.Lock()
	g.calls = append(g.calls, len(credits))
	g.mu.Unlock()
	return g.Gate.Credit(ctx, credits)
}

// A SKU whose reshare does not end fills several pages of restocks, and none of them blocks another SKU.
func TestAStuckSKUBlocksNoOther(t *testing.T) {
	l := newLab(t)
	l.config.CreditBatch, l.config.ExpiryPerSecond = 3, 1_000_000
	s, n, stuck := openTillIn(t, l, 20, sale.SKU{Limit: 1, Slots: 1})
	other, err := l.newSKU(t.Context(), n, 5, sale.SKU{Limit: 1, Slots: 1, OpensAt: l.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	gate := &countingGate{Gate: s.gate}
	creditor := service.NewCreditor(l.config, service.CreditorParts{
		Store: l.db, Ledgers: stuckLedgers{l.db, stuck.ID}, Gate: gate, Flags: s.spy, Hints: s.spy, Faults: sale.NoFaults{}, Log: slog.New(slog.DiscardHandler),
	})
	for i := range 8 {
		o := s.mustBuy(t, n, stuck.ID, fmt.Sprint("buyer-", i), 1, true)
		if _, err := s.settler.Cancel(t.Context(), o.ID, "", "operator"); err != nil {
			t.Fatal(err)
		}
	}
	o := s.mustBuy(t, n, other.ID, "ann", 1, true)
	if _, err := s.settler.Cancel(t.Context(), o.ID, "", "operator"); err != nil {
		t.Fatal(err)
	}
	if err := creditor.Round(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for sku, want := range map[string]int64{stuck.ID: 8, other.ID: 0} {
		if units, err := l.db.Uncredited(t.Context(), sku); err != nil || units != want {
			t.Errorf("%s: %d units uncredited, %v, want %d", sku, units, err, want)
		}
	}
	if len(gate.calls) != 1 || gate.calls[0] != 1 {
		t.Errorf("credits asked for: %v, want one", gate.calls)
	}
	if err := s.credited(t.Context(), stuck.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, stuck.ID)
	s.mustBalance(t, other.ID)
}

// A share that does not answer is asked once in a round, however many pages its restocks fill; others are credited.
func TestASickShareIsAskedOnce(t *testing.T) {
	l := newLab(t)
	l.config.CreditBatch = 2
	s, n, sku := openTillIn(t, l, 20, sale.SKU{Limit: 1, Slots: 1})
	for i := range 7 {
		o := s.mustBuy(t, n, sku.ID, fmt.Sprint("buyer-", i), 1, true)
		if _, err := s.settler.Cancel(t.Context(), o.ID, "", "operator"); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	s.gate.lose = func() faultKind { asked++; return lostRequest }
	if err := s.creditor.Round(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	s.gate.lose = noLoss
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
}

// Steps that fail between the commit, the gate and the note are made up for by the sweeper, and nothing comes back twice.
func TestFaultsBetweenCommitAndCredit(t *testing.T) {
	for _, point := range []sale.Point{sale.SettlementCommitted, sale.RestockCredited} {
		t.Run(string(point), func(t *testing.T) {
			s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
			o := s.mustBuy(t, n, sku.ID, "ann", 1, true)
			s.trap.at = point
			s.trap.armed.Store(1)
			if done, err := s.settler.Cancel(t.Context(), o.ID, "ann", "buyer"); err != nil || done.Outcome != sale.Changed {
				t.Errorf("cancel: %+v, %v", done, err)
			}
			if err := s.creditor.Round(t.Context(), 0); (err != nil) != (point == sale.RestockCredited) {
				t.Errorf("round: %v", err)
			}
			if err := s.credited(t.Context(), sku.ID); err != nil {
				t.Error(err)
			}
			if s.trap.seen.Load() == 0 {
				t.Error("the point was never reached")
			}
			s.mustBalance(t, sku.ID)
		})
	}
}

// Under path mysql a restock needs no credit: the way back reads the closed order.
func TestRestocksUnderPathMySQL(t *testing.T) {
	s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
	o := s.mustBuy(t, n, sku.ID, "ann", 1, true)
	if err := s.lab.db.BypassGate(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.settler.Cancel(t.Context(), o.ID, "ann", "buyer"); err != nil {
		t.Fatal(err)
	}
	s.gate.lose = func() faultKind { t.Error("the gate was asked"); return noFault }
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	if len(s.spy.cleared) != 1 || len(s.spy.hints) != 1 {
		t.Errorf("cleared %v, hinted %v", s.spy.cleared, s.spy.hints)
	}
}

func TestExpiry(t *testing.T) {
	s, n, sku := openTill(t, 10, sale.SKU{Limit: 1, Slots: 1})
	due := s.mustBuy(t, n, sku.ID, "ann", 1, true)
	paid := s.mustBuy(t, n, sku.ID, "bob", 1, true)
	if _, err := s.settler.Pay(t.Context(), paid.ID, "p1"); err != nil {
		t.Fatal(err)
	}
	s.lab.clock.advance(sale.DefaultWindow / 2)
	young := s.mustBuy(t, n, sku.ID, "cy", 1, true)
	all := []sale.OrderID{due.ID, paid.ID, young.ID}
	if err := s.expirer.Expire(t.Context(), all); err != nil {
		t.Error(err)
	}
	s.lab.clock.advance(sale.DefaultWindow/2 + time.Second)
	states := func() (list string) {
		for _, id := range all {
			o, err := s.settler.AnyOrder(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			list += string(o.State) + string(o.Reason) + " "
		}
		return list
	}
	s.paused.Store(true)
	if err := errors.Join(s.expirer.Expire(t.Context(), all), s.expirer.Round(t.Context())); err != nil {
		t.Error(err)
	}
	if got := states(); got != "CREATED PAID CREATED " {
		t.Errorf("while paused: %s", got)
	}
	s.paused.Store(false)
	for range 2 {
		if err := errors.Join(s.expirer.Expire(t.Context(), all), s.expirer.Round(t.Context())); err != nil {
			t.Error(err)
		}
		if got := states(); got != "CLOSEDPAYMENT_TIMEOUT PAID CREATED " {
			t.Errorf("afterwards: %s", got)
		}
	}
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
}
