package service

import (
	"context"
	"errors"

	"stockade/biz/sale"
)

// creditRound credits batches of restocks and remembers which shares would not take any, so that one that does not
// answer is waited for once a round and not once a batch.
type creditRound struct {
	*Creditor
	stuck map[creditShare]bool
}

type creditShare struct {
	sku   string
	share sale.Share
}

func (c *Creditor) newRound() *creditRound {
	return &creditRound{Creditor: c, stuck: map[creditShare]bool{}}
}

// credit gives the units of one batch back and notes which restocks are done. It returns trouble with MySQL; what the
// gate would not take stays for the next round. Each step has its own time: a share that answers late must not keep the
// others' credits from being noted.
func (r *creditRound) credit(ctx context.Context, restocks []sale.Restock) (trouble error) {
	var done []sale.OrderID // the gate has them, or needs none
	var credits []sale.Credit
	back := map[string]bool{} // SKUs that have units again
	for sku, of := range bySKU(restocks) {
		listing, err := r.listing(ctx, sku)
		if err != nil {
			trouble = errors.Join(trouble, err)
			continue
		}
		for _, restock := range of {
			switch credit, verdict := creditFor(listing, restock); {
			case verdict == creditNeedless:
				done = append(done, restock.Order)
				back[sku] = back[sku] || listing.Ledger.Mode == sale.ModeMySQL
			case verdict == creditDue && !r.stuck[creditShare{sku, credit.Share}]:
				credits = append(credits, credit)
			}
		}
	}
	applied := r.apply(ctx, credits)
	for _, credit := range applied {
		done = append(done, credit.Order)
		back[credit.SKU] = true
	}
	r.announce(ctx, back)
	if len(applied) > 0 {
		if err := r.Faults.At(ctx, sale.RestockCredited); err != nil {
			return errors.Join(trouble, err)
		}
	}
	return errors.Join(trouble, r.note(ctx, done))
}

// listing reads a SKU from MySQL, after the restocks' commit: a cached listing may be older than a reshare that counted
// them.
func (r *creditRound) listing(ctx context.Context, sku string) (sale.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.CreditTimeoutMs))
	defer cancel()
	return r.Ledgers.Listing(ctx, sku)
}

func (r *creditRound) note(ctx context.Context, done []sale.OrderID) error {
	if len(done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.CreditTimeoutMs))
	defer cancel()
	return r.Store.Credited(ctx, done)
}

// apply asks the gate and returns what it has now. An error counts against the shares that have not answered.
func (r *creditRound) apply(ctx context.Context, credits []sale.Credit) (has []sale.Credit) {
	if len(credits) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.CreditTimeoutMs))
	defer cancel()
	applied, err := r.Gate.Credit(ctx, credits)
	if err != nil {
		r.Log.DebugContext(ctx, "gate did not take all credits", "error", err)
	}
	for i, credit := range credits {
		if i < len(applied) && applied[i] {
			has = append(has, credit)
		} else {
			r.stuck[creditShare{credit.SKU, credit.Share}] = true
		}
	}
	return has
}

// announce ends what nodes remember of SKUs that were sold out. A lost hint only lets their flags age out.
func (r *creditRound) announce(ctx context.Context, skus map[string]bool) {
	for sku, is := range skus {
		if !is {
			continue
		}
		r.Flags.Clear(sku)
		if err := r.Hints.Send(ctx, sku); err != nil {
			r.Log.DebugContext(ctx, "hint not sent", "sku", sku, "error", err)
		}
	}
}

func bySKU(restocks []sale.Restock) map[string][]sale.Restock {
	groups := map[string][]sale.Restock{}
	for _, r := range restocks {
		groups[r.SKU] = append(groups[r.SKU], r)
	}
	return groups
}

// creditVerdict is what is to be done about a restock.
type creditVerdict int

const (
	creditLater    creditVerdict = iota // a reshare is under way
	creditNeedless                      // a reshare has counted it, or the next one will
	creditDue
)

// creditFor decides where a restock belongs, by a listing that is read after its commit. A reshare that raised the
// epoch since has laid the units out; a full one knew the order as closed, a light one left the buyer's count as it was.
// Under path mysql the way back is a full reshare.
func creditFor(l sale.Listing, r sale.Restock) (sale.Credit, creditVerdict) {
	switch {
	case l.Ledger.LaidEpoch > r.Epoch || l.Ledger.Mode == sale.ModeMySQL:
		return sale.Credit{}, creditNeedless
	case !l.Ledger.Live():
		return sale.Credit{}, creditLater
	}
	share := r.Share
	if r.Taken < l.Ledger.LaidEpoch { // the last full reshare laid it out at its buyer's home
		share = sale.Home(buyerHash(r.Buyer), l.Slots)
	}
	return sale.Credit{
		SKU: r.SKU, Share: share, Epoch: l.Ledger.Epoch, Order: r.Order, Buyer: r.Buyer, Quantity: r.Quantity,
		Counted: l.Ledger.Epoch > r.Epoch,
	}, creditDue
}
