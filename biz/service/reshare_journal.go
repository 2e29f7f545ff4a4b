package service

import (
	"context"
	"fmt"
	"slices"

	"stockade/biz/sale"
)

// tellAll settles what the shares have undecided. What the snapshot holds is kept; acknowledged takes are promised now,
// because their buyers were told so; the rest can never be promised any more. A full reshare wipes the shares anyhow, so
// there only the acknowledged takes matter, and the pages that stand before the next one.
func (j *reshare) tellAll(ctx context.Context, shares []sale.Share) error {
	first := make([]sale.OrderID, 0, sealPage)
	for _, s := range j.sealed {
		first = append(first, orderIDs(s.Pending)...)
	}
	decided := map[sale.OrderID]sale.Holding{}
	for ids := range slices.Chunk(first, sealPage) { // all first pages at once: shares one by one took a query each
		rows, err := j.decided(ctx, ids)
		if err != nil {
			return err
		}
		for id, row := range rows {
			decided[id] = row
		}
	}
	return each(ctx, shares, func(ctx context.Context, i int, share sale.Share) error {
		return j.tell(ctx, share, j.sealed[i], decided)
	})
}

// tell settles one share's takes, page by page.
func (j *reshare) tell(ctx context.Context, share sale.Share, page sale.SealedShare, decided map[sale.OrderID]sale.Holding) error {
	for {
		if len(page.Pending) > 0 {
			if err := j.tellPage(ctx, share, page, decided); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		err := j.progress(ctx)
		if err != nil {
			return err
		}
		if page, err = j.layer.Seal(ctx, j.listing.ID, share, j.epoch(), sealPage); err != nil {
			return err
		}
		if decided, err = j.decided(ctx, orderIDs(page.Pending)); err != nil {
			return err
		}
	}
}

func (j *reshare) tellPage(ctx context.Context, share sale.Share, page sale.SealedShare, decided map[sale.OrderID]sale.Holding) error {
	var kept, dropped, acknowledged []sale.PendingTake
	for _, take := range page.Pending {
		row, found := decided[take.Order]
		switch {
		case found && rowKeeps(row, share, take):
			kept = append(kept, take)
		case !found && take.Acknowledged:
			acknowledged = append(acknowledged, take)
		default:
			dropped = append(dropped, take)
		}
	}
	carried, refused, err := j.carry(ctx, share, acknowledged)
	if err != nil {
		return fmt.Errorf("carry: %w", err)
	}
	dropped = append(dropped, refused...)
	j.mu.Lock()
	j.dropped += unitsOf(dropped)
	j.mu.Unlock()
	if j.full && !page.More {
		return nil
	}
	return j.layer.Tell(ctx, j.listing.ID, share, j.epoch(), append(kept, carried...), dropped)
}

// carry promises acknowledged takes under the reshare's epoch; nobody else can promise now. Those that do not fit become
// closed orders, which their buyers can find.
func (j *reshare) carry(ctx context.Context, share sale.Share, takes []sale.PendingTake) (carried, refused []sale.PendingTake, err error) {
	if len(takes) == 0 {
		return nil, nil, nil
	}
	asked := make([]sale.Take, len(takes))
	for i, t := range takes {
		asked[i] = sale.Take{
			Order: t.Order, SKU: j.listing.ID, Buyer: t.Buyer, Quantity: t.Quantity, Share: share, Token: t.Token,
			Epoch: j.epoch(), Mode: j.listing.Ledger.Mode, Limit: j.listing.Limit, Window: j.listing.PaymentWindow,
		}
	}
	var holdings []sale.Holding
	var unpromised []sale.Take
	for from := 0; from < len(asked); from += carryPage {
		some := asked[from:min(from+carryPage, len(asked))]
		decisions, err := j.ledgers.Carry(ctx, j.listing.ID, j.epoch(), some)
		if err != nil {
			return nil, nil, err
		}
		for i, d := range decisions {
			take := takes[from+i]
			switch d.Outcome {
			case sale.Promised, sale.Found, sale.FoundElse:
				if !orderKeeps(d) {
					refused = append(refused, take)
					continue
				}
				carried = append(carried, take)
				holdings = append(holdings, sale.Holding{
					Order: take.Order, Buyer: take.Buyer, Quantity: take.Quantity, Share: share, Token: take.Token,
				})
			case sale.Short, sale.OverLimit, sale.Rejected:
				refused, unpromised = append(refused, take), append(unpromised, some[i])
			case sale.Fenced:
				return nil, nil, sale.ErrConflict
			default:
				return nil, nil, fmt.Errorf("order %s: %w", take.Order, d.Err)
			}
		}
		if err := j.progress(ctx); err != nil {
			return nil, nil, err
		}
	}
	if len(unpromised) > 0 {
		if err := closeUnpromised(ctx, j.ledgers, j.log, j.listing.ID, unpromised); err != nil {
			return nil, nil, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.units += unitsOf(carried)
	if j.full {
		j.carried = append(j.carried, holdings...)
	}
	return carried, refused, nil
}

func (j *reshare) decided(ctx context.Context, ids []sale.OrderID) (map[sale.OrderID]sale.Holding, error) {
	j.reading.Lock()
	defer j.reading.Unlock()
	return j.snap.Decided(ctx, ids)
}

func unitsOf(takes []sale.PendingTake) (n int64) {
	for _, t := range takes {
		n += t.Quantity
	}
	return n
}

func orderIDs(takes []sale.PendingTake) []sale.OrderID {
	ids := make([]sale.OrderID, len(takes))
	for i, t := range takes {
		ids[i] = t.Order
	}
	return ids
}
