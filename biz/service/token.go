package service

import (
	"context"
	"errors"

	"stockade/biz/sale"
)

// MayIssueToken tells whether buyers may have purchase tokens of a SKU now. When they may not, the result says why:
// NOT_ON_SALE with the times, or BUSY. sale.ErrNotFound for an unknown SKU.
func (s *Sales) MayIssueToken(ctx context.Context, sku string) (refused sale.Result, may bool, err error) {
	if s.toggles.EntranceClosed(sku) {
		listing, _ := s.catalogue.Remembered(sku)
		return sale.Result{Code: sale.NotOnSale, Reason: sale.ReasonPaused, SKU: listing.SKU}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	listing, err := s.catalogue.Listing(ctx, sku)
	switch {
	case errors.Is(err, sale.ErrNotFound):
		return sale.Result{}, false, err
	case err != nil:
		s.trouble.warn(ctx, "listing not readable", sku, err)
		return busy(sale.ReasonDependency, sale.OrderID{}, false), false, nil
	}
	if reason, on := listing.Window(s.now()); !on {
		return sale.Result{Code: sale.NotOnSale, Reason: reason, SKU: listing.SKU}, false, nil
	}
	return sale.Result{}, true, nil
}

// tooLate answers a request whose token has expired: with the order, if one came of it.
func (s *Sales) tooLate(ctx context.Context, p *purchase) (sale.Result, error) {
	if r, answered, err := s.lookUp(ctx, p); answered || err != nil {
		return r, err
	}
	return sale.Result{}, sale.ErrPurchaseTokenExpired
}
