package service

import (
	"context"

	"stockade/biz/sale"
)

// pastGate is a round on path mysql: the promise alone decides, at a bounded rate, and no share is asked.
func (s *Sales) pastGate(ctx context.Context, p *purchase) (r sale.Result, again bool, err error) {
	if !s.bypass.take() {
		return busy(sale.ReasonPathRate, p.id, false), false, nil
	}
	// Token.Change 0 is no take of any share: a reshare that finds the order lays it out as one of the outbox.
	take := p.take(sale.Home(p.hash, p.listing.Slots), sale.Token{Epoch: p.listing.Ledger.LiveEpoch})
	r, again, err = s.decide(ctx, p, take, sale.Admitted)
	if !again && err == nil && (r.Code == sale.SoldOut || r.Code == sale.Retry) {
		s.watcher.Kick(p.SKU) // the ledger ran short: read it, so that the flags can work
	}
	return r, again, err
}
