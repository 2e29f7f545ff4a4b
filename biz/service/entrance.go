package service

import (
	"context"
	"errors"
	"time"

	"stockade/biz/sale"
)

// shutLookup bounds the look for an earlier order while the entrance is closed, which may be because MySQL is sick.
const shutLookup = 500 * time.Millisecond

// shut answers while an operator has the entrance closed. It needs no server: a request that can be a repetition is looked
// up, and when nobody can be asked the answer is the same refusal, with the order that may exist.
func (s *Sales) shut(ctx context.Context, req PurchaseRequest) (sale.Result, error) {
	p := &purchase{PurchaseRequest: req, hash: buyerHash(req.Buyer)}
	listing, known := s.catalogue.Remembered(req.SKU)
	p.listing = listing
	refused := sale.Result{Code: sale.NotOnSale, Reason: sale.ReasonPaused, SKU: listing.SKU}
	if !p.keyed() {
		return refused, nil
	}
	id, err := req.orderID()
	if err != nil {
		return sale.Result{}, err
	}
	p.id = id
	return s.running.of(id).do(ctx, s.deadline(), id, req.Quantity, func(ctx context.Context) (sale.Result, error) {
		return s.shutKeyed(ctx, p, known, refused)
	})
}

func (s *Sales) shutKeyed(ctx context.Context, p *purchase, known bool, refused sale.Result) (sale.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, shutLookup)
	defer cancel()
	unknown := refused
	unknown.Unknown, unknown.Order.ID = true, p.id
	if !known {
		listing, err := s.catalogue.Listing(ctx, p.SKU)
		switch {
		case errors.Is(err, sale.ErrNotFound):
			return refused, nil
		case err != nil:
			return unknown, nil
		}
		p.listing, refused.SKU = listing, listing.SKU
	}
	r, answered, err := s.lookUp(ctx, p)
	switch {
	case err != nil || answered && r.Code == sale.Accepted:
		return r, err
	case answered:
		return unknown, nil
	}
	return refused, nil
}
