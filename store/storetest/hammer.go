package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"stockade/biz/sale"
)

// hammer keeps promising and closing orders of one SKU until its context ends.
type hammer struct {
	t   *testing.T
	s   Subject
	sku string

	closing chan sale.Order
	sold    chan struct{} // a token when the epoch has seen enough promises
	mu      sync.Mutex
	orders  map[int64][]sale.OrderID // promised, by epoch
}

// enoughSold is how many orders an epoch should see before it is ended.
const enoughSold = 20

// promising is one buyer's client: it goes on under the live epoch whenever it is fenced.
func (h *hammer) promising(ctx context.Context, client int) {
	epoch := int64(1)
	for n := 0; ctx.Err() == nil; n++ {
		takes := []sale.Take{
			take(h.sku, fmt.Sprintf("u%d-%d", client, n), 1, 10), take(h.sku, fmt.Sprintf("v%d-%d", client, n), 2, 10),
		}
		for i := range takes {
			takes[i].Epoch = epoch
		}
		// Not ctx: every promise is to have an answer.
		ds := h.s.DB.Promise(context.Background(), takes)
		h.note(epoch, ds)
		if ds[0].Outcome != sale.Fenced {
			continue
		}
		l, err := h.s.DB.Listing(context.Background(), h.sku)
		if err != nil {
			h.t.Error(err)
			return
		}
		epoch = l.Ledger.LiveEpoch
	}
}

func (h *hammer) note(epoch int64, ds []sale.Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range ds {
		switch d.Outcome {
		case sale.Promised:
			h.orders[epoch] = append(h.orders[epoch], d.Order.ID)
			select {
			case h.closing <- d.Order:
			default: // the closer is behind: this one stays open
			}
		case sale.Fenced:
		default:
			h.t.Errorf("outcome %v: %v", d.Outcome, d.Err)
		}
	}
	if len(h.orders[epoch]) >= enoughSold {
		select {
		case h.sold <- struct{}{}:
		default:
		}
	}
}

func (h *hammer) settling(ctx context.Context) {
	for {
		select {
		case o := <-h.closing:
			c := sale.Change{Kind: sale.Compensate, Order: o.ID, Actor: "hammer"}
			// Not ctx, as above. A closing that gave way is one that did not happen.
			g := h.s.DB.Settle(context.Background(), []sale.Change{c})[0]
			if g.Outcome != sale.Changed && g.Outcome != sale.NotChanged {
				h.t.Errorf("closing: %+v", g)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Promises and closings hammer a SKU while reshares follow each other. A promise that commits under an old epoch must be
// in the snapshot of the reshare that ended the epoch, and the snapshot's ledger must agree with its rows.
func reshareFences(t *testing.T, s Subject) {
	const clients, reshares = 4, 6
	newSKU(t, s.DB, "a", 1_000_000, 1000)
	ctx := deadline(t)
	h := &hammer{
		t: t, s: s, sku: "a",
		closing: make(chan sale.Order, 1000), sold: make(chan struct{}, 1), orders: map[int64][]sale.OrderID{},
	}
	hammering, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for c := range clients {
		running.Go(func() { h.promising(hammering, c) })
	}
	running.Go(func() { h.settling(hammering) })

	seen := map[int64]map[sale.OrderID]bool{}
	for epoch := int64(1); epoch <= reshares; epoch++ {
		select {
		case <-h.sold:
		case <-ctx.Done():
			t.Fatal("promises make no progress")
		}
		seen[epoch] = reshareAndCheck(ctx, t, s, "a", epoch)
	}
	stop()
	running.Wait()
	for epoch, rows := range seen {
		for _, id := range h.orders[epoch] {
			if !rows[id] {
				t.Errorf("order %s committed under epoch %d is not in the snapshot that ended it", id, epoch)
			}
		}
	}
	wantBooks(t, s.DB, "a")
}

// reshareAndCheck runs a reshare and returns the orders in its snapshot.
func reshareAndCheck(
	ctx context.Context, t *testing.T, s Subject, sku string, epoch int64,
) map[sale.OrderID]bool {
	t.Helper()
	snap, err := s.DB.BeginReshare(ctx, sku, epoch, sale.LedgerChange{})
	must(t, err)
	rows, units := map[sale.OrderID]bool{}, int64(0)
	for after := int64(0); ; {
		page, err := snap.Holdings(ctx, after, 7)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, h := range page {
			rows[h.Order] = true
			if !h.Closed {
				units += h.Quantity
			}
			after = h.Seq
		}
	}
	if l := snap.Listing().Ledger; l.Promised != units || l.Epoch != epoch+1 || l.LiveEpoch != epoch {
		t.Errorf("reshare at epoch %d: the ledger says %+v, the rows hold %d units", epoch, l, units)
	}
	must(t, snap.Close())
	must(t, s.DB.FinishReshare(ctx, sku, epoch+1, false, ""))
	return rows
}
