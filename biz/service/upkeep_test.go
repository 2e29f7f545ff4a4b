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
	"stockade/shard"
)

// Slots go from many to few and back while buyers buy: every unit is sold once, and every winner finds the order.
func TestSlotCountsChangeUnderLoad(t *testing.T) {
	const total, buyers = 300, 8
	l := newLab(t)
	l.config.ReshareWaitMs = 10_000
	n := l.node(l.gate(t))
	t.Cleanup(n.stop)
	sku, err := l.newSKU(t.Context(), n, total, sku32())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	won := map[string]sale.OrderID{}
	next := 0
	var wait sync.WaitGroup
	for range buyers {
		wait.Go(func() {
			for {
				mu.Lock()
				id := fmt.Sprint("buyer", next)
				next++
				done := len(won) >= total/2 || next > 4*total
				mu.Unlock()
				if done {
					return
				}
				r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: id, Key: "k", Quantity: 1})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Code == sale.Accepted {
					mu.Lock()
					won[id] = r.Order.ID
					mu.Unlock()
				}
			}
		})
	}
	for _, slots := range []int{8, 32, 1, 32} {
		if _, err := n.skus.Slots(t.Context(), sku.ID, slots); err != nil {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
	wait.Wait()
	n.outcome()
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || listing.Slots != 32 || listing.Ledger.Promised != int64(len(won)) {
		t.Fatalf("%d won, listing %+v, %v", len(won), listing, err)
	}
	if _, err := n.sweeper.Sweep(t.Context(), listing, 0); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, l, n, sku)
	for id, order := range won {
		r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: id, Key: "k", Quantity: 1})
		if err != nil || r.Code != sale.Accepted || r.Order.ID != order || !r.Replayed {
			t.Fatalf("%s won %s and is told %+v, %v", id, order, r, err)
		}
	}
}

func sku32() sale.SKU { return sale.SKU{Limit: 2, Slots: 32, ReservePct: 5} }

// Fewer slots leave no keys behind.
func TestFewerSlotsDropTheOthersKeys(t *testing.T) {
	l, n, sku := shop(t)
	if _, err := n.skus.Slots(t.Context(), sku.ID, 6); err != nil {
		t.Fatal(err)
	}
	if _, err := n.skus.Slots(t.Context(), sku.ID, 1); err != nil {
		t.Fatal(err)
	}
	keys, err := l.raw.Keys(t.Context(), l.shard.Prefix+":{"+sku.ID+".*}:stock").Result()
	if err != nil || len(keys) != 2 {
		t.Errorf("keys %v, %v: want those of one slot and the reserve", keys, err)
	}
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || listing.Ledger.LaidSlots != 1 {
		t.Errorf("laid slots %d, %v", listing.Ledger.LaidSlots, err)
	}
	sku.Slots = 1
	wantWhole(t, l, n, sku)
}

// acknowledge takes units whose buyers are told ACCEPTED before any promise.
func acknowledge(t *testing.T, gate *shard.Gate, l sale.Listing, buyers int) map[sale.OrderID]string {
	t.Helper()
	told := map[sale.OrderID]string{}
	for i := range buyers {
		buyer := fmt.Sprint("journal", i)
		for _, share := range []sale.Share{sale.Share(i % l.Slots), sale.Reserve} {
			id := sale.DeriveOrderID(l.ID, buyer, "k")
			adm, err := gate.Admit(t.Context(), sale.AdmitRequest{
				SKU: l.ID, Share: share, Epoch: l.Ledger.LiveEpoch, Order: id, Buyer: buyer, Quantity: 1, Limit: l.Limit, Acknowledge: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if adm.Verdict == sale.Admitted {
				told[id] = buyer
				break
			}
		}
	}
	return told
}

// Whoever was told ACCEPTED before the promise has an order after a reshare: a live one while units last, else a closed
// one. Nothing is promised above the total, and the gate has the rest.
func TestReshareCarriesAcknowledgedTakes(t *testing.T) {
	for name, order := range map[string]service.ReshareOrder{
		"light": {Reason: "test"},
		"full":  {Reason: "test", Full: true},
		"slots": {Reason: "test", Slots: 5, Full: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, n, sku := shop(t)
			gate := l.gate(t)
			listing, err := l.db.Listing(t.Context(), sku.ID)
			if err != nil {
				t.Fatal(err)
			}
			// The gate believes in ten units more than there are.
			for share := range sale.Share(2) {
				if err := l.raw.HIncrBy(t.Context(), l.stockKey(sku.ID, share), "left", 5).Err(); err != nil {
					t.Fatal(err)
				}
			}
			told := acknowledge(t, gate, listing, 40)
			if len(told) < 25 {
				t.Fatalf("only %d takes", len(told))
			}
			if err := n.resharer.Run(t.Context(), sku.ID, order); err != nil {
				t.Fatal(err)
			}
			live, closed := 0, 0
			for id, buyer := range told {
				o, err := l.db.Order(t.Context(), buyer, id)
				switch {
				case err != nil:
					t.Errorf("order of %s: %v", buyer, err)
				case o.State == sale.OrderQueued:
					live++
				case o.State == sale.OrderClosed && o.Reason == sale.ReasonCompensated:
					closed++
				default:
					t.Errorf("order of %s: %+v", buyer, o)
				}
			}
			if live != 19 || closed != len(told)-19 {
				t.Errorf("%d live and %d closed of %d; 19 units were left", live, closed, len(told))
			}
			wantWhole(t, l, n, sku)
		})
	}
}

// finished is a closed SKU with one order paid, one closed and credited, and units unsold.
func finished(t *testing.T) (*till, *testNode, sale.SKU) {
	t.Helper()
	s, n, sku := openTill(t, 20, sale.SKU{Limit: 2, Slots: 2, ReservePct: 10})
	paid := s.mustBuy(t, n, sku.ID, "ann", 2, true)
	gone := s.mustBuy(t, n, sku.ID, "bob", 1, true)
	done := s.lab.db.Settle(t.Context(), []sale.Change{
		{Kind: sale.Pay, Order: paid.ID, Payment: "p1"}, {Kind: sale.Cancel, Order: gone.ID},
	})
	for _, d := range done {
		if d.Outcome != sale.Changed {
			t.Fatalf("settled as %+v", d)
		}
	}
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := n.skus.Close(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	return s, n, sku
}

func TestNoReportBeforeTheCloseOut(t *testing.T) {
	_, n, sku := finished(t)
	var state *sale.StateError
	if _, err := n.skus.CloseoutReport(t.Context(), sku.ID); !errors.As(err, &state) || state.State != sale.Closed {
		t.Errorf("got %v, want a refusal that names the state", err)
	}
	if _, err := n.skus.CloseoutReport(t.Context(), "none"); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("a SKU that there is not: %v", err)
	}
}

// wantClosedOut fails unless nothing of a SKU is left but its report and its archive.
func wantClosedOut(t *testing.T, s *till, n *testNode, sku sale.SKU) {
	t.Helper()
	listing, err := s.lab.db.Listing(t.Context(), sku.ID)
	if err != nil || listing.State != sale.ClosedOut {
		t.Fatalf("the SKU is %s, %v", listing.State, err)
	}
	keys, err := s.lab.keysOf(t.Context(), sku)
	if err != nil || len(keys) > 0 {
		t.Errorf("keys %v, %v", keys, err)
	}
	report, err := n.skus.CloseoutReport(t.Context(), sku.ID)
	if err != nil || report.Books.Sold != 2 || report.Unsold != 18 || report.Left != 18 {
		t.Errorf("report %+v, %v", report, err)
	}
	if more, err := s.lab.db.Archive(t.Context(), sku.ID, 100); err != nil || more != 0 {
		t.Errorf("%d rows were not archived, %v", more, err)
	}
	audit, err := n.skus.Audit(t.Context(), sku.ID)
	if err != nil || !audit.Holds || audit.Gate != nil {
		t.Errorf("audit %+v, %v", audit, err)
	}
}

func TestCloseOut(t *testing.T) {
	s, n, sku := finished(t)
	if _, err := n.skus.CloseOut(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	wantClosedOut(t, s, n, sku)
	again, err := n.skus.CloseOut(t.Context(), sku.ID)
	if err != nil || again.Unsold != 18 {
		t.Errorf("once more: %+v, %v", again, err)
	}
	s.lab.clock.advance(time.Minute)
	n.healer.Round(t.Context())
	n.heal(t.Context())
	wantClosedOut(t, s, n, sku) // the healer must not lay it out again
}

// A close-out that dies at any step can be asked again, and finishes.
func TestACloseOutThatDiedIsFinishedByTheNext(t *testing.T) {
	for _, point := range []sale.Point{sale.CloseoutSealed, sale.CloseoutReported, sale.CloseoutDropped} {
		for _, healed := range []bool{false, true} {
			t.Run(fmt.Sprint(point, " healed between: ", healed), func(t *testing.T) {
				s, n, sku := finished(t)
				gate := s.lab.gate(t)
				ctx, die := context.WithCancel(t.Context())
				defer die()
				skus := service.NewSKUs(service.SKUParts{
					Ledgers: s.lab.db, Gate: gate, Layer: gate, Resharer: n.resharer, Catalogue: n.catalogue, Flags: &spy{}, Hints: noHints{},
					Books: s.lab.db, Closeouts: s.lab.db, Conservation: n.conservation, Faults: deadAt{point, die},
					Now: s.lab.clock.Now, Log: slog.New(slog.DiscardHandler),
				})
				if _, err := skus.CloseOut(ctx, sku.ID); err == nil || ctx.Err() == nil {
					t.Fatalf("the process outlived the point: %v", err)
				}
				if healed {
					for range 2 {
						n.healer.Round(t.Context())
						n.heal(t.Context())
						s.lab.clock.advance(2500 * time.Millisecond)
					}
				}
				if _, err := n.skus.CloseOut(t.Context(), sku.ID); err != nil {
					t.Fatal(err)
				}
				wantClosedOut(t, s, n, sku)
			})
		}
	}
}

func TestACloseOutIsRefused(t *testing.T) {
	t.Run("while it is open", func(t *testing.T) {
		_, n, sku := shop(t)
		var state *sale.StateError
		if _, err := n.skus.CloseOut(t.Context(), sku.ID); !errors.As(err, &state) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("while orders are on their way", func(t *testing.T) {
		_, n, sku := shop(t)
		if _, err := n.skus.Close(t.Context(), sku.ID); err != nil {
			t.Fatal(err)
		}
		var unfinished *service.UnfinishedError
		if _, err := n.skus.CloseOut(t.Context(), sku.ID); !errors.As(err, &unfinished) || unfinished.Queued != 1 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("when the shares disagree", func(t *testing.T) {
		s, n, sku := finished(t)
		if err := s.lab.raw.HIncrBy(t.Context(), s.lab.stockKey(sku.ID, 0), "left", -1).Err(); err != nil {
			t.Fatal(err)
		}
		var differ *service.DisagreementError
		if _, err := n.skus.CloseOut(t.Context(), sku.ID); !errors.As(err, &differ) {
			t.Fatalf("error %v", err)
		}
		s.mustBalance(t, sku.ID) // laid out again
		if _, err := n.skus.CloseOut(t.Context(), sku.ID); err != nil {
			t.Errorf("after the shares were laid out again: %v", err)
		}
	})
}

// Past the gate and back: what was admitted before is void, what was sold past the gate is known to it afterwards.
func TestThePathGoesPastTheGateAndBack(t *testing.T) {
	l, n, sku := shop(t)
	if _, err := n.skus.Path(t.Context(), sku.ID, sale.ModeMySQL); err != nil {
		t.Fatal(err)
	}
	if err := l.putBack(t.Context(), sku, copyOfGate{}); err != nil { // Redis is of no matter now
		t.Fatal(err)
	}
	n.healer.Round(t.Context())
	n.heal(t.Context())
	if _, err := n.skus.Adjust(t.Context(), sku.ID, 4); err != nil {
		t.Fatal(err)
	}
	keys, err := l.keysOf(t.Context(), sku)
	if err != nil || len(keys) > 0 {
		t.Errorf("keys %v, %v: nobody may touch the shares under path mysql", keys, err)
	}
	l.clock.advance(time.Second) // the rate of this path fills with time
	req := service.PurchaseRequest{SKU: sku.ID, Buyer: "bob", Key: "k", Quantity: 2}
	if r, err := n.sales.Purchase(t.Context(), req); err != nil || r.Code != sale.Accepted || r.Replayed {
		t.Fatalf("past the gate: %+v, %v", r, err)
	}
	n.outcome()
	listing, err := n.skus.Path(t.Context(), sku.ID, sale.ModeRedis)
	if err != nil || listing.Ledger.Total != 24 || listing.Ledger.Promised != 3 {
		t.Fatalf("back: %+v, %v", listing.Ledger, err)
	}
	wantWhole(t, l, n, sku)
	for _, req := range []service.PurchaseRequest{req, {SKU: sku.ID, Buyer: "ann", Key: "k", Quantity: 1}} {
		if r, err := n.sales.Purchase(t.Context(), req); err != nil || r.Code != sale.Accepted || !r.Replayed {
			t.Errorf("%s asks again: %+v, %v", req.Buyer, r, err)
		}
	}
}

// An order that was closed before a light reshare, and whose units the gate had not got back by then, must not count
// against its buyer afterwards.
func TestALightReshareForgetsNoClosedOrder(t *testing.T) {
	s, n, sku := openTill(t, 20, sale.SKU{Limit: 2, Slots: 2, ReservePct: 10})
	o := s.mustBuy(t, n, sku.ID, "ann", 2, true)
	if d := s.lab.db.Settle(t.Context(), []sale.Change{{Kind: sale.Cancel, Order: o.ID}}); d[0].Outcome != sale.Changed {
		t.Fatalf("%+v", d)
	}
	if err := n.resharer.Run(t.Context(), sku.ID, service.ReshareOrder{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	n.catalogue.Forget(sku.ID)
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	s.mustBalance(t, sku.ID)
	r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: "k2", Quantity: 2})
	if err != nil || r.Code != sale.Accepted {
		t.Errorf("ann, whose order is cancelled, is told %s (%s), %v", r.Code, r.Reason, err)
	}
}
