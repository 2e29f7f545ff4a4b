package service

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// SKUs is the operator's hand on what is sold.
type SKUs struct {
	ledgers   Ledgers
	gate      Gate
	resharer  *Resharer
	catalogue Catalogue
	flags     Flags
	hints     Hints
	books     Bookkeeper
	layer     Layer
	closeouts Closeouts
	conserve  *Conservation
	faults    sale.Faults
	now       func() time.Time
	log       *slog.Logger
}

// SKUParts are what SKUs is made of.
type SKUParts struct {
	Ledgers   Ledgers
	Gate      Gate
	Resharer  *Resharer
	Catalogue Catalogue
	Flags     Flags
	Hints     Hints
	Books     Bookkeeper
	Layer     Layer
	Closeouts Closeouts
	// Conservation measures what an audit and a reconciliation show of the gate.
	Conservation *Conservation
	Faults       sale.Faults // nil: sale.NoFaults
	Now          func() time.Time
	Log          *slog.Logger
}

// NewSKUs returns the use case.
func NewSKUs(p SKUParts) *SKUs {
	if p.Faults == nil {
		p.Faults = sale.NoFaults{}
	}
	return &SKUs{
		ledgers: p.Ledgers, gate: p.Gate, resharer: p.Resharer, catalogue: p.Catalogue, flags: p.Flags,
		hints: p.Hints, books: p.Books, layer: p.Layer, closeouts: p.Closeouts, conserve: p.Conservation,
		faults: p.Faults, now: p.Now, log: p.Log,
	}
}

// Create writes a DRAFT. sku.Slots 0 means: as many as the total calls for; a zero OpensAt means now.
// Errors: *sale.InputError, sale.ErrExists.
func (s *SKUs) Create(ctx context.Context, sku sale.SKU, total int64) (sale.Listing, error) {
	if total < 1 || total > sale.MaxTotal {
		return sale.Listing{}, sale.BadInput("total", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxTotal))
	}
	if sku.Slots == 0 {
		sku.Slots = sale.SlotsFor(total)
	}
	if sku.OpensAt.IsZero() {
		sku.OpensAt = s.now()
	}
	if err := sku.Validate(); err != nil {
		return sale.Listing{}, err
	}
	if err := s.ledgers.CreateSKU(ctx, sku, total); err != nil {
		return sale.Listing{}, unavailable(err)
	}
	return s.changed(ctx, sku.ID)
}

// Load lays a DRAFT's stock out over its shares. *sale.StateError in any other state.
func (s *SKUs) Load(ctx context.Context, sku string) (sale.Listing, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return listing, unavailable(err)
	}
	if listing.State != sale.Draft {
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: "load"}
	}
	if err := s.resharer.Run(ctx, sku, ReshareOrder{Reason: "load", Full: true}); err != nil {
		return listing, unavailable(err)
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
		return sale.Listing{}, unavailable(err)
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
		return listing, unavailable(err)
	}
	if !listing.State.HasStock() {
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: "adjust"}
	}
	if listing.Ledger.Total+add > sale.MaxTotal {
		return listing, sale.BadInput("add", fmt.Sprintf("would raise the total above %d", sale.MaxTotal))
	}
	if err := s.resharer.Run(ctx, sku, ReshareOrder{Reason: "adjust", AddTotal: add}); err != nil {
		return listing, unavailable(err)
	}
	return s.changed(ctx, sku)
}

// Get reads one SKU from MySQL.
func (s *SKUs) Get(ctx context.Context, sku string) (sale.Listing, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	return listing, unavailable(err)
}

// List reads SKUs in the order of their ids, after the given one.
func (s *SKUs) List(ctx context.Context, after string, limit int) ([]sale.Listing, error) {
	listings, err := s.ledgers.Listings(ctx, after, limit)
	return listings, unavailable(err)
}

// Shares reads the figures of every share from the gate.
func (s *SKUs) Shares(ctx context.Context, sku string) ([]sale.Figures, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return nil, unavailable(err)
	}
	figures, err := s.gate.Peek(ctx, sku, listing.Slots)
	return figures, unavailable(err)
}

// Books counts what the SKU's rows say, to be compared with its ledger.
func (s *SKUs) Books(ctx context.Context, sku string) (sale.Books, error) {
	if _, err := s.ledgers.Listing(ctx, sku); err != nil {
		return sale.Books{}, unavailable(err)
	}
	books, err := s.books.Books(ctx, sku)
	return books, unavailable(err)
}

// changed makes every node look anew and returns the SKU as it is now. A lost hint only delays the others.
func (s *SKUs) changed(ctx context.Context, sku string) (sale.Listing, error) {
	s.catalogue.Forget(sku)
	s.flags.Clear(sku)
	_ = s.hints.Send(ctx, sku)
	listing, err := s.ledgers.Listing(ctx, sku)
	return listing, unavailable(err)
}
