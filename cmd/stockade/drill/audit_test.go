//go:build services

package drill_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

// settleBound is how long orders and undecided takes may need after the last answer: the journal sweeper looks at what is
// older than 5 s, once a second, and may need a second look.
const settleBound = 10 * time.Second

// Of SKUs with so few units the audit sells what is left: nobody may be refused while somebody could be served.
const (
	littleUnits   = 1000
	strandedBound = 3 * time.Second // from asking to a verdict while units lie in other shares; the tail plan takes a second
)

// row is an order as the outbox and the order table have it.
type row struct {
	id       string
	buyer    string
	quantity int64
	state    sale.OrderState // QUEUED while there is no order row
	reason   string
	accepted int64 // Unix ms
	closed   int64 // Unix ms; 0: live
	promised bool  // false: the row is no part of the ledger, it was closed without a promise
}

// truth is what MySQL holds of a SKU.
type truth struct {
	rows                 map[string]row
	total, promised      int64
	uncredited, livesum  int64
	strangers, duplicate int // order rows without an outbox row; ids in two rows
	changes              []totalChange
}

const truthQuery = `
SELECT LOWER(HEX(o.id)), o.buyer, o.qty, o.created_at, COALESCE(o.closed_at, 0), o.close_reason,
       COALESCE(r.state, 0), COALESCE(r.qty, o.qty) = o.qty,
       o.closed_at IS NULL OR EXISTS (SELECT 1 FROM restock x WHERE x.order_id = o.id)
FROM outbox o LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
WHERE o.sku = ?`

// truth reads a SKU at one moment: orders may still be closed while it reads. The sale has to be over.
func (w *world) truth(s *sku) (tr truth, err error) {
	tr.rows = map[string]row{}
	moment, err := w.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return tr, err
	}
	defer func() { _ = moment.Rollback() }()
	found, err := moment.Query(truthQuery, s.name)
	if err != nil {
		return tr, err
	}
	defer found.Close()
	for found.Next() {
		var r row
		var state int
		var same bool
		if err := found.Scan(&r.id, &r.buyer, &r.quantity, &r.accepted, &r.closed, &r.reason, &state, &same, &r.promised); err != nil {
			return tr, err
		}
		if !same {
			return tr, fmt.Errorf("order %s has another quantity than its outbox row", r.id)
		}
		r.id = dashed(r.id)
		r.state = []sale.OrderState{sale.OrderQueued, sale.OrderCreated, sale.OrderPaid, sale.OrderClosed}[state]
		if _, twice := tr.rows[r.id]; twice {
			tr.duplicate++
		}
		tr.rows[r.id] = r
		if r.closed == 0 {
			tr.livesum += r.quantity
		}
	}
	if err := found.Err(); err != nil {
		return tr, err
	}
	err = moment.QueryRow("SELECT total, promised FROM ledger WHERE sku = ?", s.name).Scan(&tr.total, &tr.promised)
	if err != nil {
		return tr, err
	}
	err = moment.QueryRow("SELECT COALESCE(SUM(qty), 0) FROM restock WHERE sku = ? AND credited_at IS NULL", s.name).Scan(&tr.uncredited)
	if err != nil {
		return tr, err
	}
	err = moment.QueryRow(`SELECT COUNT(*) FROM orders r LEFT JOIN outbox o ON o.id = r.id WHERE r.sku = ? AND o.id IS NULL`,
		s.name).Scan(&tr.strangers)
	if err != nil {
		return tr, err
	}
	changes, err := moment.Query(totalsQuery, s.name)
	if err != nil {
		return tr, err
	}
	defer changes.Close()
	for changes.Next() {
		var c totalChange
		if err := changes.Scan(&c.added, &c.at); err != nil {
			return tr, err
		}
		tr.changes = append(tr.changes, c)
	}
	return tr, changes.Err()
}

func dashed(hex string) string {
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
}

// unsettled says what is not in its final place yet, "" when all is.
func (tr truth) unsettled(shares []handler.ShareJSON) string {
	queued := 0
	for _, r := range tr.rows {
		if r.state == sale.OrderQueued {
			queued++
		}
	}
	var left, pending int64
	for _, s := range shares {
		left += s.Left
		pending += s.Pending
		if s.Gone || s.Sealed {
			return fmt.Sprintf("share %s: gone %v, sealed %v", s.Share, s.Gone, s.Sealed)
		}
	}
	if queued > 0 || pending != 0 || tr.uncredited != 0 || left != tr.total-tr.promised {
		return fmt.Sprintf("%d orders queued, %d units pending, %d uncredited, drift %d (total %d, promised %d, left %d)",
			queued, pending, tr.uncredited, tr.total-tr.promised-left-pending, tr.total, tr.promised, left)
	}
	return ""
}

// settle waits until every promise is an order, every take is decided and every unit is where it belongs.
func (w *world) settle(s *sku, bound time.Duration) (truth, time.Duration) {
	w.t.Helper()
	begun := time.Now()
	for {
		tr, err := w.truth(s)
		why := ""
		if err != nil {
			why = err.Error()
		} else if shares, err := w.shares(s); err != nil {
			why = err.Error()
		} else {
			why = tr.unsettled(shares)
		}
		if why == "" {
			return tr, time.Since(begun)
		}
		if time.Since(begun) > bound {
			w.t.Fatalf("%s not settled within %v: %s", s.name, bound, why)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// verdicts are the figures that every drill ends with; all but wins and unknown have to be 0.
type figures struct {
	attempts, acknowledged, unknown                   int
	lost, unexplained, duplicate, oversold, overLimit int64
	drift, stranded                                   int64
}

// audit ends a sale: it waits for everything to settle, compares what buyers were told with what is written, and checks
// that the whole history fits one sequential order. It returns how long settling took.
func (c *crowd) audit(bound time.Duration) (settled time.Duration) {
	c.w.t.Helper()
	c.close()
	for _, fault := range c.h.faults {
		c.w.t.Error(fault)
	}
	for _, s := range c.w.skus {
		c.sellRest(s)
	}
	for _, s := range c.w.skus {
		tr, took := c.w.settle(s, bound)
		if s.total <= littleUnits && tr.promised < tr.total && c.toppedUpLate(s, tr) {
			c.sellRest(s)
			tr, took = c.w.settle(s, bound)
		}
		settled = max(settled, took)
		attempts := c.attemptsOf(s)
		f := c.compare(s, tr, attempts)
		if s.total <= littleUnits {
			f.stranded = tr.total - tr.promised
		}
		c.w.t.Logf("audit %s: %d of %d units sold, %d calls, %d orders acknowledged, %d others of unknown outcome; lost %d, "+
			"unexplained %d, duplicate %d, oversold %d, over-limit %d, drift %d, stranded %d", s.name, tr.promised, tr.total, f.attempts,
			f.acknowledged, f.unknown, f.lost, f.unexplained, f.duplicate, f.oversold, f.overLimit, f.drift, f.stranded)
		c.found = append(c.found, f)
		if f.lost+f.unexplained+f.duplicate+f.oversold+f.overLimit != 0 || f.drift != 0 || f.stranded != 0 {
			c.w.t.Errorf("%s: the audit failed", s.name)
		}
		began := time.Now()
		if why := checkHistory(s, operations(s, c.h.began, attempts, tr)); why != "" {
			c.w.t.Errorf("%s: %s", s.name, why)
		}
		c.w.t.Logf("history of %s: %d calls fit one order, checked in %v", s.name, len(attempts), time.Since(began).Round(time.Millisecond))
	}
	c.w.t.Logf("answers: %v", c.h.codes)
	c.w.t.Logf("settled %v after the last answer, bound %v", settled.Round(time.Millisecond), bound)
	c.w.reshares()
	return settled
}

// sellRest sells what is left of a SKU that has few units.
func (c *crowd) sellRest(s *sku) {
	c.w.t.Helper()
	if s.total > littleUnits {
		return
	}
	c.w.t.Logf("%s: the last units found their buyers; the slowest verdict took %v, bound %v", s.name,
		c.mopUp(c.w.t, s).Round(time.Millisecond), strandedBound)
}

// toppedUpLate tells whether units came on top, by a call without an answer, when buyers had heard SOLD_OUT at last.
func (c *crowd) toppedUpLate(s *sku, tr truth) bool {
	var heard time.Duration
	for _, a := range c.attemptsOf(s) {
		if a.Code == sale.SoldOut.String() {
			heard = max(heard, a.call)
		}
	}
	last := len(tr.changes) - 1
	return last >= 0 && sinceBegan(tr.changes[last].at, c.h.began)+clockSlack >= heard
}

func (c *crowd) attemptsOf(s *sku) (of []attempt) {
	for _, a := range c.h.all() {
		if a.sku == s.name {
			of = append(of, a)
		}
	}
	return of
}

// compare holds what is written against what was told.
func (c *crowd) compare(s *sku, tr truth, attempts []attempt) (f figures) {
	t := c.w.t
	t.Helper()
	f.attempts, f.duplicate = len(attempts), int64(tr.duplicate)
	acked, asked := map[string]request{}, map[request]string{}
	unknownIDs, silent := map[string]bool{}, map[string]bool{} // by id; by buyer, when no answer named one
	for _, a := range attempts {
		switch {
		case a.kind == adjusting: // has no order
		case a.won():
			if other, ok := acked[a.OrderID]; ok && other != a.request {
				f.duplicate++
				t.Errorf("%+v and %+v were both told order %s", other, a.request, a.OrderID)
			}
			if id, ok := asked[a.request]; ok && id != a.OrderID && a.key != "" {
				f.duplicate++
				t.Errorf("%+v was told orders %s and %s", a.request, id, a.OrderID)
			}
			acked[a.OrderID], asked[a.request] = a.request, a.OrderID
		case a.open() && a.OrderID != "":
			unknownIDs[a.OrderID] = true
		case a.open():
			silent[a.buyer] = true
		}
	}
	f.acknowledged = len(acked)
	for id, r := range acked {
		got, ok := tr.rows[id]
		if !ok || got.state == sale.OrderQueued || got.buyer != r.buyer || got.quantity != r.quantity {
			f.lost++
			t.Errorf("%+v was told ACCEPTED %s, written is %+v", r, id, got)
		}
	}
	held := map[string]int64{}
	for id, r := range tr.rows {
		if r.closed == 0 {
			held[r.buyer] += r.quantity
		}
		if _, ok := acked[id]; ok {
			continue
		}
		f.unknown++
		if !unknownIDs[id] && !silent[r.buyer] {
			f.unexplained++
			t.Errorf("order %s %+v was neither told ACCEPTED nor unknown", id, r)
		}
	}
	for buyer, units := range held {
		if units > s.limit {
			f.overLimit++
			t.Errorf("%s holds %d units, the limit is %d", buyer, units, s.limit)
		}
	}
	f.oversold = max(0, tr.livesum-tr.total)
	f.drift = tr.promised - tr.livesum // the shares were compared when all settled
	f.unexplained += int64(tr.strangers)
	c.compareTotals(s, tr, attempts, &f)
	return f
}
