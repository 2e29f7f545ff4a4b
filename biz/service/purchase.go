package service

import (
	"context"
	"errors"
	"time"

	"stockade/biz/sale"
)

// maxRounds bounds how often one purchase may start again under a new epoch.
const maxRounds = 4

// epochPoll is how often a purchase that waits for a reshare looks at the ledger. All waiters of a node share the look.
const epochPoll = 10 * time.Millisecond

// giveBackTimeout is how long a refusal may wait for its take to be given back.
const giveBackTimeout = 250 * time.Millisecond

// try takes the purchase its way, through the gate and the promise or through the promise alone, again when the epoch
// moved on meanwhile.
func (s *Sales) try(ctx context.Context, p *purchase) (sale.Result, error) {
	deadline := time.Now().Add(ms(s.cfg.ReshareWaitMs))
	for range maxRounds {
		r, again, err := s.round(ctx, p)
		if !again {
			return r, err
		}
		if !s.awaitEpoch(ctx, p, deadline) {
			break
		}
	}
	return busy(sale.ReasonReshare, p.id, false), nil
}

// round is one try under one epoch. again asks for another one: the epoch moved on and nothing was promised.
func (s *Sales) round(ctx context.Context, p *purchase) (r sale.Result, again bool, err error) {
	if p.listing.Ledger.Mode == sale.ModeMySQL {
		return s.pastGate(ctx, p)
	}
	adm, share, err := s.admit(ctx, p)
	if err != nil {
		return s.gateTrouble(ctx, p, err), false, nil
	}
	switch adm.Verdict {
	case sale.Admitted:
		return s.admitted(ctx, p, adm, share)
	case sale.Known:
		return s.known(ctx, p, adm, share)
	case sale.Stale, sale.Gone:
		return r, true, nil
	}
	if adm.Doubtful {
		if r, answered, err := s.lookUp(ctx, p); answered || err != nil {
			return r, false, err
		}
	}
	switch adm.Verdict {
	case sale.AtLimit:
		return s.limitReached(p), false, nil
	case sale.NearLimit:
		return sale.Result{Code: sale.Retry, Reason: sale.ReasonUndecided}, false, nil
	default:
		return s.empty(ctx, p), false, nil
	}
}

// admit asks the buyer's home, and the reserve once if the home has too little and no operator minds.
func (s *Sales) admit(ctx context.Context, p *purchase) (sale.Admission, sale.Share, error) {
	home := sale.Home(p.hash, p.listing.Slots)
	first, err := s.ask(ctx, p, home)
	if err != nil || first.Verdict != sale.Empty {
		return first, home, err
	}
	if !s.toggles.Fallback(p.SKU) {
		s.watcher.Kick(p.SKU)
		return first, home, nil
	}
	second, err := s.ask(ctx, p, sale.Reserve)
	second.Doubtful = second.Doubtful || first.Doubtful
	if err == nil && second.Verdict == sale.Empty {
		s.watcher.Kick(p.SKU) // both are empty: read who won there, so that the flags can work
	}
	return second, sale.Reserve, err
}

// ask sends the purchase to one share and remembers what the share said of itself.
func (s *Sales) ask(ctx context.Context, p *purchase, share sale.Share) (sale.Admission, error) {
	adm, err := s.gate.Admit(ctx, sale.AdmitRequest{
		SKU: p.SKU, Share: share, Epoch: p.listing.Ledger.LiveEpoch,
		Order: p.id, Buyer: p.Buyer, Quantity: p.Quantity, Limit: p.listing.Limit, Acknowledge: p.acknowledge,
	})
	if err == nil && adm.Verdict != sale.Stale && adm.Verdict != sale.Gone {
		s.flags.Note(p.SKU, sale.Figures{Share: share, Epoch: adm.Epoch, Left: adm.Left, Changes: adm.Changes})
	}
	return adm, err
}

// gateTrouble is the answer when a share did not say anything.
func (s *Sales) gateTrouble(ctx context.Context, p *purchase, err error) sale.Result {
	if errors.Is(err, sale.ErrQueueFull) || errors.Is(err, sale.ErrNotSent) || errors.Is(err, sale.ErrShuttingDown) {
		return busy(reasonOf(err), p.id, false)
	}
	s.log.DebugContext(ctx, "gate did not answer", "sku", p.SKU, "error", err)
	return busy(sale.ReasonDependency, p.id, true)
}

// empty is the answer when home and reserve have too little: SOLD_OUT only if all shares together have too little.
func (s *Sales) empty(ctx context.Context, p *purchase) sale.Result {
	left, fresh := s.watcher.Left(ctx, p.listing)
	if fresh && left >= p.Quantity {
		s.healer.Ask(p.SKU, WhyTail, p.listing.Ledger.LiveEpoch)
	}
	if !fresh || left >= p.Quantity {
		return sale.Result{Code: sale.Retry, Reason: sale.ReasonElsewhere}
	}
	return s.soldOut(p)
}

// admitted goes on with a take of this very request: under durability journal it is accepted now and promised later.
func (s *Sales) admitted(ctx context.Context, p *purchase, adm sale.Admission, share sale.Share) (sale.Result, bool, error) {
	if err := s.faults.At(ctx, sale.PurchaseAdmitted); err != nil {
		return busy(sale.ReasonDependency, p.id, true), false, nil
	}
	take := p.take(share, adm.Token)
	if !p.acknowledge {
		return s.decide(ctx, p, take, sale.Admitted)
	}
	s.writer.Later(take)
	s.recent.Add(p.id)
	return sale.Result{Code: sale.Accepted, Order: p.queued(s.now())}, false, nil
}

// known goes on with the take of an earlier request with this key.
func (s *Sales) known(ctx context.Context, p *purchase, adm sale.Admission, share sale.Share) (sale.Result, bool, error) {
	switch {
	case adm.Quantity != p.Quantity:
		return sale.Result{}, false, sale.ErrKeyReused
	case adm.Decided: // a repetition of a winner: one read, instead of a promise that all others would have to redo
		order, err := s.orders.Order(ctx, p.Buyer, p.id)
		if err == nil {
			r, err := s.repeated(p, order)
			return r, false, err
		}
		if !errors.Is(err, sale.ErrNotFound) {
			s.trouble.warn(ctx, "order not readable", p.SKU, err)
			if p.acknowledge { // the gate's word that it was promised is enough, as it is for new ones
				r, err := s.repeated(p, p.queued(s.now()))
				return r, false, err
			}
			return busy(sale.ReasonDependency, p.id, true), false, nil
		}
	case adm.Acknowledged: // its buyer was told ACCEPTED, or would have been
		r, err := s.repeated(p, p.queued(s.now()))
		return r, false, err
	}
	return s.decide(ctx, p, p.take(share, adm.Token), sale.Known)
}

// take is what the promise needs to know of a purchase.
func (p *purchase) take(share sale.Share, token sale.Token) sale.Take {
	return sale.Take{
		Order: p.id, SKU: p.SKU, Buyer: p.Buyer, Quantity: p.Quantity, Share: share, Token: token,
		Epoch: p.listing.Ledger.LiveEpoch, Mode: p.listing.Ledger.Mode, Limit: p.listing.Limit,
		Window: p.listing.PaymentWindow,
	}
}

// queued is the order of an acknowledged take. Its times are this node's: the promise, which comes later, sets those
// that count.
func (p *purchase) queued(accepted time.Time) sale.Order {
	return queuedOrder(sale.PendingTake{Order: p.id, Buyer: p.Buyer, Quantity: p.Quantity}, p.listing.SKU, accepted)
}

// decide has a purchase promised and turns the decision into the answer.
func (s *Sales) decide(ctx context.Context, p *purchase, take sale.Take, verdict sale.Verdict) (sale.Result, bool, error) {
	d, err := s.writer.Decide(ctx, take)
	if err != nil {
		return s.writerTrouble(ctx, p, take, verdict, err), false, nil
	}
	switch d.Outcome {
	case sale.Promised:
		s.recent.Add(p.id)
		return sale.Result{Code: sale.Accepted, Order: d.Order}, false, nil
	case sale.Found:
		r, err := s.found(ctx, p, d.Order)
		return r, false, err
	case sale.FoundElse:
		s.giveBack(ctx, take)
		r, err := s.found(ctx, p, d.Order)
		return r, false, err
	case sale.Fenced: // the reshare that moved the epoch settles the take
		return sale.Result{}, true, nil
	case sale.Undecided:
		s.trouble.warn(ctx, "promise undecided", p.SKU, d.Err)
		return busy(sale.ReasonDependency, p.id, true), false, nil
	}
	if d.Outcome != sale.NotTaken || p.ownsTake(verdict) {
		s.giveBack(ctx, take)
	} // else another promise of this take may be under way, or committed unheard: the journal sweeper looks
	return s.refused(ctx, p, d, verdict)
}

// refused turns a promise's refusal into the answer.
func (s *Sales) refused(ctx context.Context, p *purchase, d sale.Decision, verdict sale.Verdict) (sale.Result, bool, error) {
	switch d.Outcome {
	case sale.OverLimit:
		return s.limitReached(p), false, nil
	case sale.Short:
		if p.listing.Ledger.Mode != sale.ModeMySQL {
			s.healer.Ask(p.SKU, WhyShort, p.listing.Ledger.LiveEpoch)
		}
		if d.Available >= p.Quantity {
			return sale.Result{Code: sale.Retry, Reason: sale.ReasonElsewhere}, false, nil
		}
		r := sale.Result{Code: sale.SoldOut}
		if d.Available > 0 {
			r.Reason = sale.ReasonNotEnough
		}
		return r, false, nil
	case sale.NotTaken:
		if !errors.Is(d.Err, sale.ErrBreakerOpen) { // it has logged that it opened, and why
			s.trouble.warn(ctx, "promise rolled back", p.SKU, d.Err)
		}
		return busy(reasonOf(d.Err), p.id, verdict == sale.Known), false, nil
	}
	return sale.Result{}, false, d.Err
}

// found answers a repetition with the order as it stands now.
func (s *Sales) found(ctx context.Context, p *purchase, order sale.Order) (sale.Result, error) {
	if order.State == sale.OrderQueued && order.Buyer == p.Buyer {
		if now, err := s.orders.Order(ctx, p.Buyer, p.id); err == nil {
			order = now
		}
	}
	return s.repeated(p, order)
}

// repeated answers a repetition with an order that was just read.
func (s *Sales) repeated(p *purchase, order sale.Order) (sale.Result, error) {
	s.recent.Add(p.id)
	return replay(p, order)
}

// ownsTake tells whether nobody else can be promising the take of p. Requests with the same key, on other nodes too, all
// stand on the take of the first of them: were it given back by one, it could be sold again while another has it promised.
func (p *purchase) ownsTake(verdict sale.Verdict) bool { return verdict == sale.Admitted && !p.keyed() }

// writerTrouble is the answer when the promise said nothing. A take of its own that was never served is given back at
// once; of any other one a promise may be under way, or committed unheard.
func (s *Sales) writerTrouble(ctx context.Context, p *purchase, take sale.Take, verdict sale.Verdict, err error) sale.Result {
	neverServed := errors.Is(err, sale.ErrQueueFull) || errors.Is(err, sale.ErrNotSent) || errors.Is(err, sale.ErrShuttingDown)
	if neverServed && p.ownsTake(verdict) {
		s.giveBack(ctx, take)
	}
	return busy(reasonOf(err), take.Order, !neverServed || verdict == sale.Known)
}

// giveBack drops the take before the refusal is answered, so that who hears the refusal finds the unit back. When the
// gate does not answer, the journal sweeper does it.
func (s *Sales) giveBack(ctx context.Context, take sale.Take) {
	if take.Mode == sale.ModeMySQL {
		return // no share was asked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	drop := settlement(take, false)
	drop.Unmarked = true // a repetition on another node may have had it acknowledged meanwhile
	if err := s.gate.Settle(ctx, drop); err != nil {
		s.log.DebugContext(ctx, "take left to the journal sweeper", "sku", take.SKU, "error", err)
	}
}

// awaitEpoch waits until the SKU is live under another epoch than the one p was tried with, and tells whether it is.
func (s *Sales) awaitEpoch(ctx context.Context, p *purchase, deadline time.Time) bool {
	tried := p.listing.Ledger.LiveEpoch
	for {
		listing, err := s.catalogue.Refresh(ctx, p.SKU)
		if err == nil && listing.Ledger.Live() && listing.Ledger.LiveEpoch != tried {
			p.listing = listing
			return true
		}
		if !time.Now().Add(epochPoll).Before(deadline) {
			s.healer.Ask(p.SKU, WhyLoss, p.listing.Ledger.LiveEpoch)
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(epochPoll):
		}
	}
}
