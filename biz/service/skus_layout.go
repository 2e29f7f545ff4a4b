package service

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Reshare lays a SKU's stock out anew: a light one evens out what is left, a full one lays out every buyer and order too.
// Errors: *sale.StateError, sale.ErrConflict.
func (s *SKUs) Reshare(ctx context.Context, sku string, full bool) (sale.Listing, error) {
	return s.layOut(ctx, sku, "reshare", ReshareOrder{Reason: "by hand", Full: full})
}

// Slots gives a SKU another slot count, with a full reshare; 0 means as many as its total calls for.
// Errors: *sale.InputError, *sale.StateError, sale.ErrConflict.
func (s *SKUs) Slots(ctx context.Context, sku string, slots int) (sale.Listing, error) {
	if slots < 0 || slots > sale.MaxSlots {
		return sale.Listing{}, sale.BadInput("slots", fmt.Sprintf("must be \"auto\" or a whole number from 1 to %d", sale.MaxSlots))
	}
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return listing, unavailable(err)
	}
	if slots == 0 {
		slots = sale.SlotsFor(listing.Ledger.Total)
	}
	if slots == listing.Slots && listing.Ledger.Live() {
		return listing, nil
	}
	return s.layOut(ctx, sku, "change its slots", ReshareOrder{Reason: "slots", Slots: slots, Full: true})
}

// Path sends a SKU's purchases through the gate, or past it straight to MySQL. Leaving the gate touches no share and works
// without Redis; coming back is a full reshare. Errors: *sale.InputError, *sale.StateError, sale.ErrConflict.
func (s *SKUs) Path(ctx context.Context, sku string, mode sale.Mode) (sale.Listing, error) {
	if mode != sale.ModeRedis && mode != sale.ModeMySQL {
		return sale.Listing{}, sale.BadInput("path", fmt.Sprintf("must be %s or %s", sale.ModeRedis, sale.ModeMySQL))
	}
	listing, err := s.ledgers.Listing(ctx, sku)
	switch {
	case err != nil:
		return listing, unavailable(err)
	case !listing.State.HasStock():
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: "change its path"}
	case listing.Ledger.Mode == mode && listing.Ledger.Live():
		return listing, nil
	case mode == sale.ModeMySQL:
		if err := s.ledgers.BypassGate(ctx, sku); err != nil {
			return listing, unavailable(err)
		}
		return s.changed(ctx, sku)
	}
	// The SKU sells meanwhile: a share that does not answer is no reason to shut it.
	if _, err := s.gate.Peek(ctx, sku, max(listing.Slots, listing.Ledger.LaidSlots)); err != nil {
		return listing, unavailable(err)
	}
	now, err := s.layOut(ctx, sku, "change its path", ReshareOrder{Reason: "path", Mode: mode, Full: true})
	if err == nil && now.Ledger.Mode != mode {
		err = sale.ErrConflict // somebody changed it again
	}
	return now, err
}

// layOut reshares a SKU that has shares.
func (s *SKUs) layOut(ctx context.Context, sku, want string, order ReshareOrder) (sale.Listing, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return listing, unavailable(err)
	}
	if !listing.State.HasStock() && listing.State != sale.Closed {
		return listing, &sale.StateError{SKU: sku, State: listing.State, Want: want}
	}
	if err := s.resharer.Run(ctx, sku, order); err != nil {
		return listing, unavailable(err)
	}
	return s.changed(ctx, sku)
}

// Reshares sums up the reshares of a SKU that this node finished, at most the last 512 of all SKUs.
func (s *SKUs) Reshares(sku string) (light, full ReshareTimes) {
	records := s.resharer.Records(sku)
	return TimesOf(records, false), TimesOf(records, true)
}
