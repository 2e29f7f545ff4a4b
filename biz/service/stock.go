package service

import (
	"context"

	"stockade/biz/sale"
)

// StockView is what the public may know of a SKU.
type StockView struct {
	Listing sale.Listing
	Left    int64 // units left in the gate, as this node last saw them
	Fresh   bool  // false: Left is not known
	Frozen  bool  // everything is as last known, of whatever age
}

// Stock is what the public may know of a SKU; sale.ErrNotFound, sale.ErrUnavailable.
func (s *Sales) Stock(ctx context.Context, sku string) (StockView, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	if s.toggles.StockFrozen(sku) {
		return s.frozenStock(ctx, sku)
	}
	listing, err := s.catalogue.Listing(ctx, sku)
	if err != nil {
		return StockView{}, unavailable(err)
	}
	view := StockView{Listing: listing}
	if !listing.Ledger.Live() || !listing.State.HasStock() {
		return view, nil
	}
	s.watcher.Touch(sku)
	view.Left, view.Fresh = s.watcher.Left(ctx, listing)
	return view, nil
}

// frozenStock answers from memory alone, and has nobody look at the shares. Only a SKU that this node never heard of is
// read, once.
func (s *Sales) frozenStock(ctx context.Context, sku string) (StockView, error) {
	listing, known := s.catalogue.Remembered(sku)
	if !known {
		var err error
		if listing, err = s.catalogue.Listing(ctx, sku); err != nil {
			return StockView{}, unavailable(err)
		}
	}
	view := StockView{Listing: listing, Frozen: true}
	if listing.State.HasStock() {
		view.Left, view.Fresh = s.flags.Remembered(sku, listing.Ledger.LiveEpoch, listing.Slots)
	}
	return view, nil
}
