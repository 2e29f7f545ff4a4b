package service

import (
	"context"

	"stockade/biz/sale"
)

// Audit is the proof that a SKU's units and orders are all accounted for.
type Audit struct {
	SKU    string        `json:"sku"`
	State  sale.SKUState `json:"state"`
	Path   sale.Mode     `json:"path"`
	Epoch  int64         `json:"epoch"`
	Books  sale.Books    `json:"books"`
	Gate   *GateCheck    `json:"gate,omitempty"` // missing when the gate holds no shares of the SKU, or does not count
	Shares int           `json:"shares"`         // that hold units

	Oversold   int64 `json:"oversold"`   // live units above the total
	OverLimit  int64 `json:"over_limit"` // buyers with more live units than their limit
	Lost       int64 `json:"lost"`       // accepted orders that were delivered and have no order row
	Duplicates int64 `json:"duplicates"` // order rows that no outbox row knows, or that name other things than it does
	HalfClosed int64 `json:"half_closed"`
	Queued     int64 `json:"queued"` // accepted orders whose row is on its way
	// Stranded are units in shares while another slot and the reserve have none: buyers there are told RETRY until the
	// next tail reshare.
	Stranded int64 `json:"stranded"`

	Light ReshareTimes `json:"light"` // reshares that this node finished
	Full  ReshareTimes `json:"full"`
	// Holds is the verdict: promised equals the live units, sold the paid ones, the gate has the rest, and none of oversold,
	// over limit, lost, duplicate and half closed is above 0.
	Holds bool `json:"holds"`
}

// Audit counts everything and gives the verdict. It reads every row of the SKU, a page at a time.
func (s *SKUs) Audit(ctx context.Context, sku string) (Audit, error) {
	l, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return Audit{}, unavailable(err)
	}
	a := Audit{SKU: sku, State: l.State, Path: l.Ledger.Mode, Epoch: l.Ledger.LiveEpoch}
	a.Light, a.Full = s.Reshares(sku)
	r, err := s.Reconcile(ctx, sku, false)
	if err != nil {
		return a, err
	}
	if a.Books, err = s.books.Books(ctx, sku); err != nil {
		return a, unavailable(err)
	}
	a.Gate = r.Gate
	a.Oversold = max(0, a.Books.LiveUnits-a.Books.Total)
	a.OverLimit, a.Queued = a.Books.OverLimit, a.Books.Missing
	a.Lost = r.Kinds[sale.OrderMissing]
	a.Duplicates = r.Kinds[sale.OrderStranger] + r.Kinds[sale.FieldsDiffer]
	a.HalfClosed = r.Kinds[sale.ClosedDiffers]
	if a.Gate != nil {
		figures, err := s.gate.Peek(ctx, sku, l.Slots)
		if err != nil {
			return a, unavailable(err)
		}
		a.Shares, a.Stranded = stranded(figures)
	}
	a.Holds = a.Books.Agree() && (a.Gate == nil || a.Gate.Excess == 0) &&
		a.Oversold+a.OverLimit+a.Lost+a.Duplicates+a.HalfClosed == 0
	return a, nil
}

// stranded counts the shares with units, and the units that buyers of empty slots cannot reach.
func stranded(figures []sale.Figures) (holding int, units int64) {
	empty, reserve := false, int64(0)
	for _, f := range figures {
		if f.Left > 0 {
			holding++
		}
		if f.Share == sale.Reserve {
			reserve = f.Left
			continue
		}
		units += f.Left
		empty = empty || f.Left == 0
	}
	if !empty || reserve > 0 {
		units = 0
	}
	return holding, units
}
