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
	carried, unpromised, err := j.carry(ctx, share, acknowledged)
	if err != nil {
		return fmt.Errorf("carry: %w", err)
	}
	dropped = append(dropped, unpromised...)
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
func (j *reshare) carry(ctx context.Context, share sale.Share, takes []sale.PendingTake) (carried, dropped []sale.PendingTake, err error) {
	var unpromised []sale.PendingTake
	for page := range slices.Chunk(takes, carryPage) {
		decisions, err := j.ledgers.Carry(ctx, j.listing.ID, j.epoch(), j.asked(share, page))
		if err != nil {
			return nil, nil, err
		}
		offer(j.relay, decisions)
		for i, d := range decisions {
			switch d.Outcome {
			case sale.Promised, sale.Found, sale.FoundElse:
				if orderKeeps(d) {
					carried = append(carried, page[i])
				} else {
					dropped = append(dropped, page[i])
				}
			case sale.Short, sale.OverLimit, sale.Rejected:
				unpromised = append(unpromised, page[i])
			case sale.Fenced:
				return nil, nil, sale.ErrConflict
			default:
				return nil, nil, fmt.Errorf("order %s: %w", page[i].Order, d.Err)
			}
		}
		if err := j.progress(ctx); err != nil {
			return nil, nil, err
		}
	}
	kept, closed, err := j.closeUnpromised(ctx, share, unpromised)
	if err != nil {
		return nil, nil, err
	}
	carried, dropped = append(carried, kept...), append(dropped, closed...)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.units += unitsOf(carried)
	if !j.full {
		return carried, dropped, nil
	}
	for _, take := range carried {
		j.carried = append(j.carried, sale.Holding{
			Order: take.Order, Buyer: take.Buyer, Quantity: take.Quantity, Share: share, Token: take.Token,
		})
	}
	return carried, dropped, nil
}

// closeUnpromised closes accepted orders that did not fit. One that has a row in spite of that, which the snapshot is too
// old to hold, is told by its row.
func (j *reshare) closeUnpromised(ctx context.Context, share sale.Share, takes []sale.PendingTake) (kept, dropped []sale.PendingTake, err error) {
	if len(takes) == 0 {
		return nil, nil, nil
	}
	over, _, err := closeUnpromised(ctx, j.ledgers, j.log, j.listing.ID, j.asked(share, takes))
	if err != nil {
		return nil, nil, err
	}
	var others []sale.PendingTake
	for _, take := range takes {
		if over[take.Order] {
			dropped = append(dropped, take)
		} else {
			others = append(others, take)
		}
	}
	if len(others) == 0 {
		return nil, dropped, nil
	}
	rows, err := j.ledgers.Decided(ctx, j.listing.ID, orderIDs(others))
	if err != nil {
		return nil, nil, err
	}
	for _, take := range others {
		row, found := rows[take.Order]
		switch {
		case !found:
			return nil, nil, fmt.Errorf("order %s: neither promised nor closed", take.Order)
		case rowKeeps(row, share, take):
			kept = append(kept, take)
		default:
			dropped = append(dropped, take)
		}
	}
	return kept, dropped, nil
}

// asked are takes of a share as the reshare has them promised or closed.
func (j *reshare) asked(share sale.Share, takes []sale.PendingTake) []sale.Take {
	asked := make([]sale.Take, len(takes))
	for i, t := range takes {
		asked[i] = takeOf(j.listing, share, t)
		asked[i].Epoch = j.epoch()
	}
	return asked
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
