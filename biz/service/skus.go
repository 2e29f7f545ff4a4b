package service

import (
	"context"
	"errors"
	"fmt"

	"stockade/biz/sale"
)

// SKUs is the operator's hand on what is sold.
type SKUs struct {
	ledgers   Ledgers
	gate      Gate
	resharer  *Resharer
	catalogue Catalogue
	hints     Hints
	books     Bookkeeper
}

// NewSKUs returns the use case.
func NewSKUs(ledgers Ledgers, gate Gate, resharer *Resharer, catalogue Catalogue, hints Hints, books Bookkeeper) *SKUs {
	return &SKUs{ledgers: ledgers, gate: gate, resharer: resharer, catalogue: catalogue, hints: hints, books: books}
}

// Create writes a DRAFT. sku.Slots 0 means: as many as the total calls for. Errors: *sale.InputError, sale.ErrExists.
func (s *SKUs) Create(ctx context.Context, sku sale.SKU, total int64) (sale.Listing, error) {
	if total < 1 || total > sale.MaxTotal {
		return sale.Listing{}, sale.BadInput("total", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxTotal))
	}
	if sku.Slots == 0 {
		sku.Slots = sale.SlotsFor(total)
	}
	if err := sku.Validate(); err != nil {
		return sale.Listing{}, err
	}
	if err := s.ledgers.CreateSKU(ctx, sku, total); err != nil {
		return sale.Listing{}, err
	}
	return s.changed(ctx, sku.ID)
}

// Load lays a DRAFT's stock out over its shares. *sale.StateError in any other state.
func (s *SKUs) Load(ctx context.Context, sku string) (sale.Listing, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return listing, err
	}
	if listing.State != sale.Draft {
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: "load"}
	}
	if err := s.resharer.Run(ctx, sku, ReshareOrder{Reason: "load", Full: true}); err != nil {
		return listing, err
	}
	return s.changed(ctx, sku)
}

// Open puts a LOADED or PAUSED SKU on sale; its window still holds.
func (s *SKUs) Open(ctx context.Context, sku string) (sale.Listing, error) {
	return s.move(ctx, sku, sale.Open)
}

// Pause holds the sale.
func (s *SKUs) Pause(ctx context.Context, sku string) (sale.Listing, error) {
	return s.move(ctx, sku, sale.Paused)
}

// Close ends the sale for good.
func (s *SKUs) Close(ctx context.Context, sku string) (sale.Listing, error) {
	return s.move(ctx, sku, sale.Closed)
}

func (s *SKUs) move(ctx context.Context, sku string, to sale.SKUState) (sale.Listing, error) {
	if err := s.ledgers.SetState(ctx, sku, to.MayBecome(), to); err != nil {
		return sale.Listing{}, err
	}
	return s.changed(ctx, sku)
}

// Adjust adds units to the total, or takes away what is not promised. It needs a SKU with stock in the gate.
// Errors: *sale.StateError, *sale.InputError with the figure that stands in the way.
func (s *SKUs) Adjust(ctx context.Context, sku string, add int64) (sale.Listing, error) {
	if add == 0 || add > sale.MaxTotal || add < -sale.MaxTotal {
		return sale.Listing{}, sale.BadInput("add", fmt.Sprintf("must be a whole number from %d to %d, not 0", -sale.MaxTotal, sale.MaxTotal))
	}
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return listing, err
	}
	if !listing.State.HasStock() {
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: "adjust"}
	}
	if listing.Ledger.Total+add > sale.MaxTotal {
		return listing, sale.BadInput("add", fmt.Sprintf("would raise the total above %d", sale.MaxTotal))
	}
	if err := s.resharer.Run(ctx, sku, ReshareOrder{Reason: "adjust", AddTotal: add}); err != nil {
		return listing, err
	}
	return s.changed(ctx, sku)
}

// Get reads one SKU from MySQL.
func (s *SKUs) Get(ctx context.Context, sku string) (sale.Listing, error) {
	return s.ledgers.Listing(ctx, sku)
}

// List reads SKUs in the order of their ids, after the given one.
func (s *SKUs) List(ctx context.Context, after string, limit int) ([]sale.Listing, error) {
	return s.ledgers.Listings(ctx, after, limit)
}

// Shares reads the figures of every share from the gate.
func (s *SKUs) Shares(ctx context.Context, sku string) ([]sale.Figures, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return nil, err
	}
	return s.gate.Peek(ctx, sku, listing.Slots)
}

// Books counts what the SKU's rows say, to be compared with its ledger.
func (s *SKUs) Books(ctx context.Context, sku string) (sale.Books, error) {
	if _, err := s.ledgers.Listing(ctx, sku); err != nil {
		return sale.Books{}, err
	}
	return s.books.Books(ctx, sku)
}

// changed makes every node look anew and returns the SKU as it is now. A lost hint only delays the others.
func (s *SKUs) changed(ctx context.Context, sku string) (sale.Listing, error) {
	s.catalogue.Forget(sku)
	_ = s.hints.Send(ctx, sku)
	listing, err := s.ledgers.Listing(ctx, sku)
	if errors.Is(err, sale.ErrNotFound) {
		return listing, fmt.Errorf("sku %s vanished: %w", sku, err)
	}
	return listing, err
}
