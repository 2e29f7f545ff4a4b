package store

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// maxPage bounds a page of a comparison, in rows.
const maxPage = 10_000

// repair is what may be done about a discrepancy without asking a person.
type repair uint8

const (
	leaveIt     repair = iota
	sendAgain          // the outbox row becomes NEW and due
	writeClosed        // a CLOSED order row, from the outbox row
	closeOutbox        // as a settlement closes it
	closeOrder         // with the outbox row's reason
)

func (r repair) String() string {
	return [...]string{
		leaveIt:     "",
		sendAgain:   "send the order to the broker again, so that its row gets written",
		writeClosed: "write the order row, CLOSED with the outbox row's reason",
		closeOutbox: "close the outbox row, so that its units can be sold again",
		closeOrder:  "close the order row with the outbox row's reason",
	}[r]
}

// pair is both rows of one order.
type pair struct {
	id       sale.OrderID
	buyer    string
	quantity int64
	outbox   string          // as a Discrepancy tells it; empty: no row
	row      sale.OrderState // empty: no row
	closed   bool            // of the outbox row
	same     bool            // the rows have the same SKU, buyer and quantity
	dead     bool            // an operator has a dead letter of the order to deal with
}

// judge tells what is wrong with a pair, if anything, and what may be done about it.
func (p pair) judge() (kind sale.DiscrepancyKind, fix repair) {
	switch {
	case p.outbox == "":
		return sale.OrderStranger, leaveIt
	case p.row == "" && p.closed:
		return sale.OrderMissing, writeClosed
	case p.row == "" && p.outbox == outboxText(outboxDone, false):
		if p.dead {
			return sale.OrderMissing, leaveIt
		}
		return sale.OrderMissing, sendAgain
	case p.row == "": // on its way
		return "", leaveIt
	case !p.same:
		return sale.FieldsDiffer, leaveIt
	case p.closed == (p.row == sale.OrderClosed):
		return "", leaveIt
	case p.row == sale.OrderClosed:
		return sale.ClosedDiffers, closeOutbox
	case p.row == sale.OrderCreated:
		return sale.ClosedDiffers, closeOrder
	default: // PAID: the units may be sold again already
		return sale.ClosedDiffers, leaveIt
	}
}

func (p pair) discrepancy(kind sale.DiscrepancyKind, fix repair) sale.Discrepancy {
	return sale.Discrepancy{
		Kind: kind, Order: p.id, Buyer: p.buyer, Quantity: p.quantity, Outbox: p.outbox, Row: p.row,
		Correction: fix.String(),
	}
}

func outboxText(state int, closed bool) string {
	text := [...]string{outboxNew: "NEW", outboxSent: "SENT", outboxDone: "DONE"}[state]
	if closed {
		text += " CLOSED"
	}
	return text
}

// pairColumns is a pair as the database tells it; state is the outbox row's.
type pairColumns struct {
	pair
	rawID []byte
	row   *int
	state int
}

func (c *pairColumns) finish() (p pair, err error) {
	p = c.pair
	if c.state < outboxNew || c.state > outboxDone {
		return p, fmt.Errorf("an outbox row has the unknown state %d", c.state)
	}
	p.outbox = outboxText(c.state, p.closed)
	if c.row != nil {
		if p.row, err = orderState(*c.row); err != nil {
			return p, err
		}
	}
	p.id, err = orderID(c.rawID)
	return p, err
}

// CompareOutbox looks at a page of the SKU's outbox rows, by seq, and returns the orders that do not agree with their
// order rows, with the seq to go on after; next is 0 behind the last page. A page is of at most limit rows, and at most
// 10 000. Both rows of an order are read in the same instant. Orders on their way to the broker agree.
func (db *DB) CompareOutbox(
	ctx context.Context, sku string, after int64, limit int,
) (found []sale.Discrepancy, next int64, err error) {
	limit = min(limit, maxPage)
	rows, err := db.read.QueryContext(ctx, db.sql.reconcileOutbox, sku, after, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("compare outbox rows: %w", err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		var c pairColumns
		err := rows.Scan(&next, &c.rawID, &c.buyer, &c.quantity, &c.state, &c.closed, &c.row, &c.same, &c.dead)
		if err != nil {
			return nil, 0, fmt.Errorf("compare outbox rows: %w", err)
		}
		p, err := c.finish()
		if err != nil {
			return nil, 0, fmt.Errorf("compare outbox rows: %w", err)
		}
		if kind, fix := p.judge(); kind != "" {
			found = append(found, p.discrepancy(kind, fix))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("compare outbox rows: %w", err)
	}
	if n < limit {
		next = 0
	}
	return found, next, nil
}

// CompareOrders looks at a page of all order rows, by buyer and id, and returns those of the SKU that have no outbox row,
// archived or not, or one that names another SKU or buyer. more is false behind the last page. A page is of at most
// limit rows, and at most 10 000; the cursor is the last of them, whatever its SKU.
func (db *DB) CompareOrders(
	ctx context.Context, sku string, after sale.OrderCursor, limit int,
) (found []sale.Discrepancy, next sale.OrderCursor, more bool, err error) {
	limit = min(limit, maxPage)
	rows, err := db.read.QueryContext(ctx, db.sql.reconcileOrders, sku, after.Buyer, after.Buyer, after.Order[:], limit)
	if err != nil {
		return nil, after, false, fmt.Errorf("compare order rows: %w", err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	next = after
	for ; rows.Next(); n++ {
		var c pairColumns
		var mine, known bool
		err := rows.Scan(&c.buyer, &c.rawID, &c.quantity, &c.row, &mine, &c.state, &c.closed, &known, &c.same)
		if err != nil {
			return nil, after, false, fmt.Errorf("compare order rows: %w", err)
		}
		p, err := c.finish()
		if err != nil {
			return nil, after, false, fmt.Errorf("compare order rows: %w", err)
		}
		next = sale.OrderCursor{Buyer: p.buyer, Order: p.id}
		switch {
		case mine && !known:
			p.outbox = ""
			found = append(found, p.discrepancy(p.judge()))
		case mine && !p.same:
			found = append(found, p.discrepancy(sale.FieldsDiffer, leaveIt))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, after, false, fmt.Errorf("compare order rows: %w", err)
	}
	return found, next, n == limit, nil
}
