package service

import (
	"context"
	"errors"
	"time"

	"stockade/biz/sale"
)

// OrderOf is Order for a caller who knows the SKU: it also finds an order that was accepted under durability journal and
// is not yet promised. Errors are those of Order.
func (s *Sales) OrderOf(ctx context.Context, sku, buyer string, id sale.OrderID) (sale.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	listing, err := s.catalogue.Listing(ctx, sku)
	if err != nil { // no such SKU, or nobody knows: the order may be found all the same
		order, err := s.orders.Order(ctx, buyer, id)
		return order, unavailable(err)
	}
	order, err := s.find(ctx, listing, buyer, id)
	return order, unavailable(err)
}

// find looks for an order in MySQL, then in the journals of the shares where its take can be: there it is while it is
// acknowledged and not promised. sale.ErrNotFound says that neither has it.
func (s *Sales) find(ctx context.Context, l sale.Listing, buyer string, id sale.OrderID) (sale.Order, error) {
	order, err := s.orders.Order(ctx, buyer, id)
	if err == nil || !l.State.HasStock() && l.State != sale.Closed {
		return order, err
	}
	held, heldErr := s.held(ctx, l, buyer, id)
	switch {
	case heldErr == nil:
		return held, nil
	case !errors.Is(err, sale.ErrNotFound):
		return order, err
	case !errors.Is(heldErr, sale.ErrNotFound):
		return order, heldErr
	}
	// Between the two looks it may have gone from the journal to MySQL.
	return s.orders.Order(ctx, buyer, id)
}

// inMySQL is find without the journals.
func (s *Sales) inMySQL(ctx context.Context, _ sale.Listing, buyer string, id sale.OrderID) (sale.Order, error) {
	return s.orders.Order(ctx, buyer, id)
}

// held looks an acknowledged take up at the buyer's home and in the reserve.
func (s *Sales) held(ctx context.Context, l sale.Listing, buyer string, id sale.OrderID) (sale.Order, error) {
	for _, share := range []sale.Share{sale.Home(buyerHash(buyer), l.Slots), sale.Reserve} {
		take, err := s.gate.Held(ctx, l.ID, share, id)
		switch {
		case errors.Is(err, sale.ErrNotFound):
		case err != nil:
			return sale.Order{}, err
		case take.Acknowledged && take.Buyer == buyer:
			return queuedOrder(take, l.SKU, s.now()), nil
		}
	}
	return sale.Order{}, sale.ErrNotFound
}

// queuedOrder is the order of an acknowledged take as of now, by this node's clock.
func queuedOrder(t sale.PendingTake, sku sale.SKU, now time.Time) sale.Order {
	accepted := now.Add(-t.Age).UTC().Truncate(time.Millisecond)
	return sale.Order{
		ID: t.Order, SKU: sku.ID, Buyer: t.Buyer, Quantity: t.Quantity, State: sale.OrderQueued,
		AcceptedAt: accepted, ExpiresAt: accepted.Add(sku.PaymentWindow),
	}
}
