package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// pagesGate looks at the books whenever a share is to be wiped, and may end the process at a page of slot 0.
type pagesGate struct {
	realGate
	books func() (sale.Books, error)
	dies  int // the page of slot 0 that is not read any more; 0: none
	die   context.CancelFunc

	mu       sync.Mutex
	pages    int
	promised []int64 // at the wipes
}

func (g *pagesGate) SealAll(
	ctx context.Context, sku string, shares []sale.Share, epoch int64, limit int,
) ([]sale.SealedShare, error) {
	if err := g.page(0); err != nil {
		return nil, err
	}
	return g.realGate.SealAll(ctx, sku, shares, epoch, limit)
}

func (g *pagesGate) Seal(ctx context.Context, sku string, share sale.Share, epoch int64, limit int) (sale.SealedShare, error) {
	if err := g.page(share); err != nil {
		return sale.SealedShare{}, err
	}
	return g.realGate.Seal(ctx, sku, share, epoch, limit)
}

func (g *pagesGate) page(share sale.Share) error {
	if share != 0 {
		return nil
	}
	g.mu.Lock()
	g.pages++
	dead := g.pages == g.dies
	g.mu.Unlock()
	if !dead {
		return nil
	}
	g.die()
	return errInjected
}

func (g *pagesGate) Wipe(ctx context.Context, sku string, share sale.Share, epoch int64) error {
	books, err := g.books()
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.promised = append(g.promised, books.Promised)
	g.mu.Unlock()
	return g.realGate.Wipe(ctx, sku, share, epoch)
}

// A share may hold more acknowledged takes than sealing it lists at once. A full reshare has all of them in MySQL before
// it wipes the first share, also when the one before it died between two pages.
func TestAFullReshareCarriesEveryPageBeforeItWipes(t *testing.T) {
	const takes = 1100 // sealing lists at most 1000, and fewer at first
	for _, dies := range []int{0, 2} {
		t.Run(fmt.Sprint("dies at page ", dies), func(t *testing.T) {
			l := newLab(t)
			gate := l.gate(t)
			n := l.node(gate)
			t.Cleanup(n.stop)
			sku, err := l.newSKU(t.Context(), n, takes+200, sale.SKU{Limit: 2, Slots: 1})
			if err != nil {
				t.Fatal(err)
			}
			listing, err := l.db.Listing(t.Context(), sku.ID)
			if err != nil {
				t.Fatal(err)
			}
			told := acknowledge(t, gate, listing, takes)
			figures, err := gate.Peek(t.Context(), sku.ID, sku.Slots)
			if err != nil || figures[0].Pending != takes {
				t.Fatalf("%+v, %v, want %d undecided takes in slot 0", figures, err, takes)
			}

			full := service.ReshareOrder{Reason: "test", Full: true}
			pages := &pagesGate{realGate: gate, books: func() (sale.Books, error) { return l.db.Books(t.Context(), sku.ID) }}
			if dies > 0 {
				ctx, die := context.WithCancel(t.Context())
				defer die()
				first := &pagesGate{realGate: gate, books: pages.books, dies: dies, die: die}
				if err := reshareOver(l, first).Run(ctx, sku.ID, full); err == nil || len(first.promised) > 0 {
					t.Fatalf("it was to die at page %d: %v, %d wipes", dies, err, len(first.promised))
				}
			}
			if err := reshareOver(l, pages).Run(t.Context(), sku.ID, full); err != nil {
				t.Fatal(err)
			}
			if len(pages.promised) != 2 {
				t.Fatalf("%d wipes, want those of slot 0 and the reserve", len(pages.promised))
			}
			for _, promised := range pages.promised {
				if promised != takes {
					t.Errorf("%d units were promised when a share was wiped, want %d", promised, takes)
				}
			}
			for id, buyer := range told {
				if o, err := l.db.Order(t.Context(), buyer, id); err != nil || o.State != sale.OrderQueued {
					t.Fatalf("%s was told ACCEPTED, and has %+v, %v", buyer, o, err)
				}
			}
			wantWhole(t, l, n, sku)
		})
	}
}

func reshareOver(l *lab, gate *pagesGate) *service.Resharer {
	return service.NewResharer(l.config, service.ResharerParts{
		Ledgers: l.db, Gate: gate, Layer: gate, Hints: noHints{}, Log: slog.New(slog.DiscardHandler),
	})
}
