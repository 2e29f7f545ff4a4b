package service

import (
	"context"
	"log/slog"
	"slices"

	"stockade/biz/sale"
)

// rowKeeps tells whether the outbox row of an undecided take's order keeps the take's units in that share. A row that is
// closed by now still does, because its credit brings them back; but one of an acknowledged take may have been closed
// without a promise, and no credit ever comes.
func rowKeeps(row sale.Holding, share sale.Share, take sale.PendingTake) bool {
	return row.Share == share && row.Token == take.Token && !(row.Closed && take.Acknowledged)
}

// orderKeeps is rowKeeps for acknowledged takes that were promised just now, or had a row already.
func orderKeeps(d sale.Decision) bool {
	return (d.Outcome == sale.Promised || d.Outcome == sale.Found) && d.Order.State != sale.OrderClosed
}

// closeUnpromised closes accepted orders that cannot be promised, so that their buyers learn of it. Their rows name no
// take of a share: whoever finds such a row beside its take, now or by a late promise, must not keep the take.
//
// over tells which takes can be dropped, also beside an error: those with a closed order, and those that the database
// will never take, whose buyers only an operator can tell. The orders of the others have another row by now. closed is
// how many have a closed order.
func closeUnpromised(
	ctx context.Context, ledgers Ledgers, log *slog.Logger, sku string, takes []sale.Take,
) (over map[sale.OrderID]bool, closed int, err error) {
	rows := slices.Clone(takes)
	for i := range rows {
		rows[i].Token.Change = 0
	}
	done, refused, err := ledgers.CloseUnpromised(ctx, rows)
	over = make(map[sale.OrderID]bool, len(done)+len(refused))
	for _, id := range done {
		over[id] = true
	}
	if len(done) > 0 {
		log.ErrorContext(ctx, "accepted orders could not be promised and are closed", "sku", sku, "orders", len(done))
	}
	for id, why := range refused {
		over[id] = true
		log.ErrorContext(ctx, "accepted order lost: the database refuses it", "sku", sku, "order", id, "error", why)
	}
	return over, len(done), err
}
