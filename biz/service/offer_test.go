package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// heard keeps the orders that a relay was offered.
type heard struct {
	mu     sync.Mutex
	orders []sale.Order
}

func (h *heard) Offer(orders []sale.Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = append(h.orders, orders...)
}

// wantOffered expects that the relay was offered the orders of these takes as MySQL has them, each once.
func (a accepted) wantOffered(t *testing.T, h *heard, takes ...sale.Take) {
	t.Helper()
	var want []sale.Order
	for _, take := range takes {
		o, err := a.db.Order(t.Context(), take.Buyer, take.Order)
		if err != nil || o.State != sale.OrderQueued {
			t.Errorf("%+v, %v, want a QUEUED order", o, err)
		}
		want = append(want, o)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	byID := func(a, b sale.Order) int { return slices.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(want, byID)
	slices.SortFunc(h.orders, byID)
	if !slices.Equal(h.orders, want) {
		t.Errorf("the relay was offered %+v, want %+v", h.orders, want)
	}
}

// What the journal sweeper carries is published at once, and what it cannot carry is not.
func TestASweepOffersWhatItCarries(t *testing.T) {
	a := acceptOne(t)
	second, refused := a.admit(t, 0, "bob"), a.admit(t, 0, unwritable)
	h := &heard{}
	sweeper := service.NewJournalSweeper(a.config, service.JournalParts{
		Ledgers: particular{a.db}, Promiser: particular{a.db}, Gate: a.gate, Watcher: a.n.watcher, Relay: h,
		Log: slog.New(slog.DiscardHandler),
	})
	for range 2 {
		if _, err := sweeper.Sweep(t.Context(), a.listing(t), 0); err != nil {
			t.Fatal(err)
		}
		a.wantOffered(t, h, a.take, second)
	}
	if o, err := a.db.Order(t.Context(), refused.Buyer, refused.Order); err == nil {
		t.Errorf("%+v is written, the database was to refuse it", o)
	}
}

// What a reshare carries is published at once. One whose reply got lost is told by its row at the next try: the relay's
// sweeper finds it.
func TestAReshareOffersWhatItCarries(t *testing.T) {
	for _, full := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("full %v, lost %v", full, lost), func(t *testing.T) {
				a := acceptOne(t)
				h := &heard{}
				resharer := service.NewResharer(a.config, service.ResharerParts{
					Ledgers: &mute{realStore: a.db, once: lost}, Gate: a.gate, Layer: a.gate, Hints: noHints{}, Relay: h,
					Log: slog.New(slog.DiscardHandler),
				})
				for range 2 {
					if err := resharer.Run(t.Context(), a.sku.ID, service.ReshareOrder{Reason: "test", Full: full}); err != nil {
						t.Fatal(err)
					}
				}
				a.wantOrder(t, a.take, sale.OrderQueued)
				if lost {
					a.wantOffered(t, h)
				} else {
					a.wantOffered(t, h, a.take)
				}
			})
		}
	}
}

// mute carries, and once does not say so.
type mute struct {
	realStore
	once bool
}

func (s *mute) Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error) {
	decisions, err := s.realStore.Carry(ctx, sku, epoch, takes)
	if len(takes) > 0 && s.once {
		s.once = false
		return nil, errInjected
	}
	return decisions, err
}
