package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
)

// deadAt ends the process that runs a reshare at one point: its context is cancelled, so that nothing follows.
type deadAt struct {
	point sale.Point
	die   context.CancelFunc
}

func (d deadAt) At(_ context.Context, p sale.Point) error {
	if p != d.point {
		return nil
	}
	d.die()
	return errInjected
}

// leaveHalfWay starts a reshare whose process dies at a point.
func leaveHalfWay(t *testing.T, l *lab, gate *shard.Gate, sku string, order service.ReshareOrder, point sale.Point) {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	r := service.NewResharer(l.config, service.ResharerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Faults: deadAt{point, die}, Log: slog.New(slog.DiscardHandler),
	})
	err := r.Run(ctx, sku, order)
	if ctx.Err() == nil {
		t.Fatalf("the point %s was not reached: %v", point, err)
	}
}

// heal lets the healer finish what it was asked for, as of now.
func (n *testNode) heal(ctx context.Context) {
	n.healer.Heal(ctx)
	n.healer.Settle()
}

func (l *lab) epoch(t *testing.T, sku string) int64 {
	t.Helper()
	listing, err := l.db.Listing(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	return listing.Ledger.Epoch
}

// A reshare whose process died anywhere is another node's work 2 s later, whatever it was about.
func TestAReshareThatDiedIsTakenOver(t *testing.T) {
	for _, point := range []sale.Point{sale.ReshareRaised, sale.ReshareSealed, sale.ReshareLaid, sale.ReshareOpened} {
		for name, order := range map[string]service.ReshareOrder{
			"light": {Reason: "test", AddTotal: 5},
			"slots": {Reason: "test", Slots: 5, Full: true},
			"fewer": {Reason: "test", Slots: 1, Full: true},
			"tail":  {Reason: "test", Tail: true},
		} {
			t.Run(fmt.Sprint(point, " ", name), func(t *testing.T) {
				t.Parallel()
				l, n, sku := shop(t)
				leaveHalfWay(t, l, l.gate(t), sku.ID, order, point)
				left := l.epoch(t, sku.ID)
				n.healer.Round(t.Context())
				n.heal(t.Context())
				l.clock.advance(1900 * time.Millisecond)
				n.heal(t.Context())
				if e := l.epoch(t, sku.ID); e != left {
					t.Fatalf("epoch %d became %d after 1.9 s", left, e)
				}
				l.clock.advance(600 * time.Millisecond)
				n.heal(t.Context())
				wantWhole(t, l, n, sku)
				r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: "ann", Key: "k", Quantity: 1})
				if err != nil || r.Code != sale.Accepted || !r.Replayed {
					t.Errorf("the winner who asks again: %+v, %v", r, err)
				}
			})
		}
	}
}

// A reshare that goes on is nobody else's, however long it takes.
func TestAReshareThatProgressesIsLeftAlone(t *testing.T) {
	l, n, sku := shop(t)
	leaveHalfWay(t, l, l.gate(t), sku.ID, service.ReshareOrder{Reason: "test"}, sale.ReshareSealed)
	epoch := l.epoch(t, sku.ID)
	n.healer.Ask(sku.ID, service.WhyLoss, service.AnyEpoch)
	for range 20 {
		l.clock.advance(time.Second)
		if err := l.db.ReshareProgress(t.Context(), sku.ID, epoch); err != nil {
			t.Fatalf("the reshare was overtaken: %v", err)
		}
		n.heal(t.Context())
	}
	if e := l.epoch(t, sku.ID); e != epoch {
		t.Errorf("epoch %d became %d while its reshare made progress", epoch, e)
	}
}

// Nobody buys, and still a gate that lost its keys, or came back old, is found by the next round.
func TestALossIsFoundWithoutAPurchase(t *testing.T) {
	for name, hurt := range map[string]func(t *testing.T, l *lab, n *testNode, sku sale.SKU){
		"emptied": func(t *testing.T, l *lab, _ *testNode, sku sale.SKU) {
			if err := l.putBack(t.Context(), sku, copyOfGate{}); err != nil {
				t.Fatal(err)
			}
		},
		"old": func(t *testing.T, l *lab, n *testNode, sku sale.SKU) {
			old, err := l.remember(t.Context(), sku)
			if err == nil {
				_, err = n.skus.Adjust(t.Context(), sku.ID, 5)
			}
			if err == nil {
				err = l.putBack(t.Context(), sku, old)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"one share gone": func(t *testing.T, l *lab, _ *testNode, sku sale.SKU) {
			if err := l.raw.Del(t.Context(), l.stockKey(sku.ID, sale.Reserve)).Err(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, n, sku := shop(t)
			hurt(t, l, n, sku)
			n.paused.Store(true)
			before := l.epoch(t, sku.ID)
			n.healer.Round(t.Context())
			n.heal(t.Context())
			if e := l.epoch(t, sku.ID); e != before {
				t.Fatalf("a paused healer raised the epoch from %d to %d", before, e)
			}
			n.paused.Store(false)
			n.healer.Round(t.Context())
			n.heal(t.Context())
			wantWhole(t, l, n, sku)
		})
	}
}

func (l *lab) stockKey(sku string, share sale.Share) string {
	return l.shard.Prefix + ":{" + shard.Tag(sku, share) + "}:stock"
}

// While some share does not answer, no epoch is raised for its SKU.
func TestASickShareIsNoReasonToShutItsSKU(t *testing.T) {
	l, _, sku := shop(t)
	gate := deafGate{realGate: l.gate(t), sku: sku.ID}
	log := slog.New(slog.DiscardHandler)
	parts := service.ResharerParts{Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Log: log}
	h := service.NewHealer(service.HealerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Resharer: service.NewResharer(l.config, parts),
		Conservation: service.NewConservation(service.ConservationParts{Ledgers: l.db, Gate: gate, Books: l.db, Hints: noHints{}, Now: l.clock.Now, Log: log}),
		Active:       func(time.Duration) []string { return []string{sku.ID} }, Now: l.clock.Now, Log: log,
	})
	before := l.epoch(t, sku.ID)
	h.Ask(sku.ID, service.WhyShort, service.AnyEpoch)
	for range 5 {
		h.Round(t.Context())
		h.Heal(t.Context())
		h.Settle()
		l.clock.advance(time.Second)
	}
	if e := l.epoch(t, sku.ID); e != before {
		t.Errorf("epoch %d became %d", before, e)
	}
}

// The last units lie where a buyer does not reach them: RETRY starts a tail reshare, and the next try is a sale.
func TestTheTailTurnsRetryIntoASale(t *testing.T) {
	l := newLab(t)
	n := l.node(l.gate(t))
	t.Cleanup(n.stop)
	sku, err := l.newSKU(t.Context(), n, 8, sale.SKU{Limit: 1, Slots: 8})
	if err != nil {
		t.Fatal(err)
	}
	won, retried := 0, 0
	for i := 0; won < 8; i++ {
		if i == 200 {
			t.Fatalf("200 buyers bought %d of 8", won)
		}
		req := service.PurchaseRequest{SKU: sku.ID, Buyer: fmt.Sprint("b", i), Quantity: 1}
		r, err := n.sales.Purchase(t.Context(), req)
		if err == nil && r.Code == sale.Retry {
			retried++
			l.clock.advance(600 * time.Millisecond) // the tail reshare is due at the latest then
			n.heal(t.Context())
			n.catalogue.Forget(sku.ID) // the hint
			r, err = n.sales.Purchase(t.Context(), req)
		}
		if err != nil || (r.Code != sale.Accepted && won < 8) {
			t.Fatalf("buyer %d with %d of 8 sold: %+v, %v", i, won, r, err)
		}
		won++
	}
	if retried == 0 {
		t.Error("no buyer was told RETRY: the test shows nothing")
	}
	for _, rec := range n.resharer.Records(sku.ID)[1:] {
		if rec.Full || rec.Reason != "tail" {
			t.Errorf("reshare %+v, want light ones for the tail", rec)
		}
	}
}

// While buyers may not ask the reserve, the tail brings units to the slots and never out of reach; what lies in the reserve
// is sold too.
func TestTheTailWithoutReserve(t *testing.T) {
	const units = 40
	l := newLab(t)
	n := l.node(l.gate(t))
	t.Cleanup(n.stop)
	sku, err := l.newSKU(t.Context(), n, units, sale.SKU{Limit: 1, Slots: 8, ReservePct: 20})
	if err != nil {
		t.Fatal(err)
	}
	setToggle(t, n, sale.ToggleFallback, sale.SwitchOff)
	won, buyers := 0, 0
	for ; won < units && buyers < 40*units; buyers++ {
		r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: fmt.Sprint("b", buyers), Quantity: 1})
		switch {
		case err == nil && r.Code == sale.Accepted:
			won++
		case err == nil && r.Code == sale.Retry:
			l.clock.advance(600 * time.Millisecond)
			n.heal(t.Context())
			n.catalogue.Forget(sku.ID)
		default:
			t.Fatalf("with %d of %d sold: %+v, %v", won, units, r, err)
		}
	}
	if won < units {
		t.Errorf("%d buyers bought %d of %d", buyers, won, units)
	}
	for _, rec := range n.resharer.Records(sku.ID)[1:] {
		if rec.Full || rec.Reason != "tail without reserve" {
			t.Errorf("reshare %+v, want light ones that leave the reserve empty", rec)
		}
	}
}

// A gate that admits more than there is: MySQL refuses, and a full reshare puts the gate right.
func TestAShortLedgerAsksForAFullReshare(t *testing.T) {
	l, n, sku := shop(t)
	if err := l.raw.HIncrBy(t.Context(), l.stockKey(sku.ID, sale.Reserve), "left", 40).Err(); err != nil {
		t.Fatal(err)
	}
	short := false
	for i := 0; i < 60 && !short; i++ {
		r, err := n.sales.Purchase(t.Context(), service.PurchaseRequest{SKU: sku.ID, Buyer: fmt.Sprint("b", i), Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		n.outcome()
		short = r.Code == sale.SoldOut
	}
	if !short {
		t.Fatal("MySQL promised everything that the gate admitted")
	}
	n.heal(t.Context())
	wantWhole(t, l, n, sku)
	records := n.resharer.Records(sku.ID)
	last := records[len(records)-1]
	if !last.Full || last.Drift != -39 && last.Drift != -40 {
		t.Errorf("the reshare was %+v, want a full one that found some 40 units too many", last)
	}
}

// Drift is believed after three measurements with the same sign, and healed by a full reshare.
func TestDriftIsHealedAfterThreeMeasurements(t *testing.T) {
	for _, units := range []int64{-3, 3} {
		t.Run(fmt.Sprint(units), func(t *testing.T) {
			l, n, sku := shop(t)
			if err := l.raw.HIncrBy(t.Context(), l.stockKey(sku.ID, 0), "left", units).Err(); err != nil {
				t.Fatal(err)
			}
			before := l.epoch(t, sku.ID)
			for i := range 3 {
				n.heal(t.Context())
				if e := l.epoch(t, sku.ID); e != before {
					t.Fatalf("epoch raised after %d measurements", i)
				}
				n.healer.Round(t.Context())
			}
			n.heal(t.Context())
			wantWhole(t, l, n, sku)
			n.healer.Round(t.Context())
			if d := n.conservation.UnexplainedDrift(); d != 0 {
				t.Errorf("unexplained drift %d after the reshare", d)
			}
		})
	}
}

// lyingGate hides a unit, whatever is laid out.
type lyingGate struct{ service.Gate }

func (g lyingGate) Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error) {
	figures, err := g.Gate.Peek(ctx, sku, slots)
	if err == nil {
		figures[0].Left--
	}
	return figures, err
}

// Drift that a full reshare does not end closes the entrance, if that is configured.
func TestUnexplainedDriftPausesTheSale(t *testing.T) {
	l, n, sku := shop(t)
	gate := l.gate(t)
	log := slog.New(slog.DiscardHandler)
	c := service.NewConservation(service.ConservationParts{
		Ledgers: l.db, Gate: lyingGate{gate}, Books: l.db, Hints: noHints{}, PauseOnUnexplained: true, Now: l.clock.Now, Log: log,
		Audit: service.NewAuditLog(l.db, log),
	})
	h := service.NewHealer(service.HealerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Resharer: n.resharer, Conservation: c, Active: n.watcher.Active,
		Audit: service.NewAuditLog(l.db, log), Now: l.clock.Now, Log: log,
	})
	before := l.epoch(t, sku.ID)
	for i := range 6 {
		if listing, err := l.db.Listing(t.Context(), sku.ID); err != nil || listing.State != sale.Open {
			t.Fatalf("after %d measurements the sale is %s, %v", i, listing.State, err)
		}
		h.Round(t.Context())
		h.Heal(t.Context())
		h.Settle()
		l.clock.advance(time.Second)
	}
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil || listing.State != sale.Paused || listing.Ledger.Epoch <= before {
		t.Errorf("listing %+v, %v: want it paused after a reshare", listing, err)
	}
	lines, err := l.db.AuditLog(t.Context(), sale.AuditFilter{Actor: sale.ServiceActor, Action: "sku.pause", Limit: 9})
	if err != nil || len(lines) != 1 || lines[0].Target != sku.ID || lines[0].Reason == "" {
		t.Errorf("audit log: %+v, %v; want the pause", lines, err)
	}
	lines, err = l.db.AuditLog(t.Context(), sale.AuditFilter{Actor: sale.ServiceActor, Action: "sku.reshare", Target: sku.ID, Limit: 9})
	if err != nil || len(lines) == 0 {
		t.Errorf("audit log: %+v, %v; want the full reshares too", lines, err)
	}
	if d := c.UnexplainedDrift(); d != 1 {
		t.Errorf("unexplained drift %d, want 1", d)
	}
}

// Many nodes hear of one short ledger. The reshare of the first one ends it for all of them.
func TestAnEndedShortageIsNoReasonForAnotherReshare(t *testing.T) {
	l, n, sku := shop(t)
	seen := l.epoch(t, sku.ID)
	if err := n.resharer.Run(t.Context(), sku.ID, service.ReshareOrder{Reason: "another node", Full: true}); err != nil {
		t.Fatal(err)
	}
	after := l.epoch(t, sku.ID)
	for _, c := range []struct{ asked, want int64 }{{seen, after}, {after, after + 1}} {
		n.healer.Ask(sku.ID, service.WhyShort, c.asked)
		n.heal(t.Context())
		if e := l.epoch(t, sku.ID); e != c.want {
			t.Errorf("asked about epoch %d: epoch %d, want %d", c.asked, e, c.want)
		}
		l.clock.advance(time.Minute)
	}
}

// Reshares that change nothing come ever more seldom, up to 30 s apart.
func TestUselessResharesComeEverMoreSeldom(t *testing.T) {
	l, n, sku := shop(t)
	start, last := l.clock.Now(), l.epoch(t, sku.ID)
	var at []time.Duration
	for l.clock.Now().Sub(start) < 2*time.Minute {
		n.healer.Ask(sku.ID, service.WhyShort, service.AnyEpoch)
		n.heal(t.Context())
		if e := l.epoch(t, sku.ID); e != last {
			last = e
			at = append(at, l.clock.Now().Sub(start))
		}
		l.clock.advance(100 * time.Millisecond)
	}
	want := []time.Duration{0, 500, 1500, 3500, 7500, 15500, 31500, 61500, 91500}
	if len(at) != len(want) {
		t.Fatalf("reshares at %v", at)
	}
	for i := range want {
		if at[i] != want[i]*time.Millisecond {
			t.Errorf("reshare %d at %v, want %v ms", i, at[i], int64(want[i]))
		}
	}
}
