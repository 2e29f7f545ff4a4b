package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"stockade/biz/sale"
)

// openSettlement reads what the changes are about and locks the order rows until the transaction ends. The outbox rows
// come first and without a lock: they tell whose orders these are, which never changes, and an order row that this
// transaction holds keeps its outbox row from being closed.
func (db *DB) openSettlement(ctx context.Context, t *txn, group []*edit) (*settlement, error) {
	s := &settlement{orders: make(map[sale.OrderID]*standing, len(group)), payments: map[string]payment{}}
	if err := db.findOrders(ctx, t, s, group); err != nil {
		return nil, err
	}
	if err := db.lockOrders(ctx, t, s); err != nil {
		return nil, err
	}
	if err := db.findPayments(ctx, t, s, group); err != nil {
		return nil, err
	}
	// Behind the locks: an order that fell due while they were waited for is due.
	s.now = db.clock.now()
	return s, nil
}

// findOrders looks the orders up in the outbox and, behind a close-out, in its archive.
func (db *DB) findOrders(ctx context.Context, t *txn, s *settlement, group []*edit) error {
	ids := make([]sale.OrderID, len(group))
	for i, e := range group {
		ids[i] = e.Order
	}
	live, err := db.recordsByID(ctx, t, ids)
	if err != nil {
		return err
	}
	var missing []sale.OrderID
	for _, id := range ids {
		if _, ok := live[id]; !ok {
			missing = append(missing, id)
		}
	}
	archived, err := db.recordsFrom(ctx, t, db.sql.archiveByIDs, missing)
	if err != nil {
		return err
	}
	for id, r := range live {
		s.orders[id] = &standing{record: r, order: r.order}
	}
	for id, r := range archived {
		s.orders[id] = &standing{record: r, order: r.order, archived: true}
	}
	for _, e := range group {
		if o := s.orders[e.Order]; o != nil {
			e.sku = o.record.order.SKU
		}
	}
	return nil
}

// lockOrders holds the order rows that exist and reads them. A row that does not exist yet cannot be held: whoever
// writes it first makes the other one's insert a duplicate.
func (db *DB) lockOrders(ctx context.Context, t *txn, s *settlement) error {
	if len(s.orders) == 0 {
		return nil
	}
	rows, err := orderRows(ctx, t, pairList(db.sql.ordersLock, len(s.orders)), pairArgs(sortedOrders(s.orders))...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		o := s.orders[row.ID]
		o.order, o.written = row, true
	}
	return nil
}

func (db *DB) findPayments(ctx context.Context, t *txn, s *settlement, group []*edit) error {
	var ids []any
	for _, e := range group {
		if e.Kind == sale.Pay {
			ids = append(ids, e.Payment)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := collect(ctx, t, func(rows *sql.Rows) (p payment, err error) {
		var order []byte
		if err := rows.Scan(&p.id, &order, &p.outcome); err != nil {
			return p, err
		}
		p.order, err = orderID(order)
		return p, err
	}, inList(db.sql.paymentByIDs, len(ids)), ids...)
	for _, p := range found {
		s.payments[p.id] = p
	}
	return err
}

// writeSettlement writes all decisions. Orders and payments come before the ledger, so that its hot rows are held for
// as short as can be.
func (db *DB) writeSettlement(ctx context.Context, t *txn, s *settlement) error {
	for _, step := range []func(context.Context, *txn, *settlement) error{
		db.writeOrders, db.writePayments, db.writeLedgers, db.writeOutbox, db.writeRestocks,
	} {
		if err := step(ctx, t, s); err != nil {
			return err
		}
	}
	var closed, paid []sale.Order
	for _, c := range s.closed {
		closed = append(closed, c.order)
	}
	for _, o := range s.paid {
		paid = append(paid, o.order)
	}
	news := slices.Concat(newNotices(sale.TopicPaid, paid), newNotices(sale.TopicClosed, closed), s.refunds)
	return db.insertNotices(ctx, t, news)
}

func (db *DB) writeOrders(ctx context.Context, t *txn, s *settlement) error {
	var fresh []*standing
	closed := map[sale.Reason][]*standing{}
	for _, c := range s.closed {
		if c.fresh {
			fresh = append(fresh, c.standing)
		} else {
			closed[c.order.Reason] = append(closed[c.order.Reason], c.standing)
		}
	}
	if len(fresh) > 0 {
		sortOrders(fresh)
		orders := make([]sale.Order, len(fresh))
		for i, o := range fresh {
			orders[i] = o.order
		}
		if err := db.insertClosedOrders(ctx, t, orders); err != nil {
			return err
		}
	}
	if err := db.moveOrders(ctx, t, orderPaid, "", s.paid); err != nil {
		return err
	}
	for _, reason := range slices.Sorted(maps.Keys(closed)) {
		if err := db.moveOrders(ctx, t, orderClosed, reason, closed[reason]); err != nil {
			return err
		}
	}
	return nil
}

// insertClosedOrders writes CLOSED rows of orders that never had one; orders are sorted as the primary key is.
func (db *DB) insertClosedOrders(ctx context.Context, t *txn, orders []sale.Order) error {
	now := millis(db.clock.now())
	values := make([]any, 0, 9*len(orders))
	for _, o := range orders {
		values = append(values, o.Buyer, o.ID[:], o.SKU, o.Quantity, orderClosed, string(o.Reason),
			millis(o.AcceptedAt), millis(o.ExpiresAt), now)
	}
	_, err := t.exec(ctx, bulk(db.sql.orderInsertClosed, len(orders)), values...)
	return err
}

// moveOrders takes CREATED rows, which this transaction holds, to another state.
func (db *DB) moveOrders(ctx context.Context, t *txn, state int, reason sale.Reason, of []*standing) error {
	if len(of) == 0 {
		return nil
	}
	sortOrders(of)
	args := append([]any{state, string(reason)}, pairArgs(of)...)
	n, err := t.exec(ctx, pairList(db.sql.ordersSettle, len(of)), args...)
	return allChanged(n, len(of), err)
}

// allChanged makes a statement that changed fewer rows than were decided about fail the transaction.
func allChanged(n int64, want int, err error) error {
	if err == nil && n != int64(want) {
		return fmt.Errorf("%d rows changed where %d were to: %w", n, want, errDisagree)
	}
	return err
}

func (db *DB) writePayments(ctx context.Context, t *txn, s *settlement) error {
	if len(s.taken) == 0 {
		return nil
	}
	// In the order of the key, so that two settlements with the same payments cannot deadlock.
	slices.SortFunc(s.taken, func(a, b payment) int { return cmp.Compare(a.id, b.id) })
	values := make([]any, 0, 4*len(s.taken))
	for i := range s.taken {
		p := &s.taken[i]
		values = append(values, p.id, p.order[:], p.outcome, millis(s.now))
	}
	_, err := t.exec(ctx, bulk(db.sql.paymentInsert, len(s.taken)), values...)
	return err
}

// writeLedgers writes each ledger row once, in the order of SKUs, and then reads their epochs: a reshare that begins
// later waits for this transaction, and its snapshot has these closings.
func (db *DB) writeLedgers(ctx context.Context, t *txn, s *settlement) error {
	type sums struct{ closed, sold int64 }
	bySKU := map[string]*sums{}
	of := func(sku string) *sums {
		if bySKU[sku] == nil {
			bySKU[sku] = &sums{}
		}
		return bySKU[sku]
	}
	for _, c := range s.closed {
		of(c.restock.SKU).closed += c.restock.Quantity
	}
	for _, o := range s.paid {
		of(o.record.order.SKU).sold += o.order.Quantity
	}
	skus := slices.Sorted(maps.Keys(bySKU))
	for _, sku := range skus {
		sum := bySKU[sku]
		n, err := t.exec(ctx, db.sql.ledgerSettle, sum.closed, sum.closed, sum.sold, sku)
		if err := allChanged(n, 1, err); err != nil {
			return &skuError{sku, err}
		}
	}
	if len(s.closed) == 0 {
		return nil
	}
	epochs := make(map[string]int64, len(skus))
	type version struct {
		sku   string
		epoch int64
	}
	read, err := collect(ctx, t, func(rows *sql.Rows) (v version, err error) {
		return v, rows.Scan(&v.sku, &v.epoch)
	}, inList(db.sql.ledgerEpochs, len(skus)), asArgs(skus)...)
	for _, v := range read {
		epochs[v.sku] = v.epoch
	}
	for _, c := range s.closed {
		c.restock.Epoch = epochs[c.restock.SKU]
	}
	return err
}

func (db *DB) writeOutbox(ctx context.Context, t *txn, s *settlement) error {
	type kind struct {
		query  string
		reason sale.Reason
	}
	byKind := map[kind][]sale.OrderID{}
	for _, c := range s.closed {
		k := kind{db.sql.outboxClose, c.order.Reason}
		if c.fresh {
			k.query = db.sql.outboxCloseDone
		}
		byKind[k] = append(byKind[k], c.restock.Order)
	}
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b kind) int { return cmp.Compare(a.reason, b.reason) })
	for _, k := range kinds {
		ids := byKind[k]
		slices.SortFunc(ids, compareIDs)
		args := append([]any{millis(s.now), string(k.reason)}, idArgs(ids)...)
		n, err := t.exec(ctx, inList(k.query, len(ids)), args...)
		if err := allChanged(n, len(ids), err); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) writeRestocks(ctx context.Context, t *txn, s *settlement) error {
	if len(s.closed) == 0 {
		return nil
	}
	values := make([]any, 0, 10*len(s.closed))
	for _, c := range s.closed {
		r := c.restock
		values = append(values, r.Order[:], r.SKU, r.Buyer, r.Quantity, int64(r.Share), r.Taken, r.Epoch,
			string(c.order.Reason), c.actor, millis(s.now))
	}
	_, err := t.exec(ctx, bulk(db.sql.restockInsert, len(s.closed)), values...)
	return err
}

// sortedOrders lists orders as the primary key of order rows sorts them.
func sortedOrders(of map[sale.OrderID]*standing) []*standing {
	all := slices.Collect(maps.Values(of))
	sortOrders(all)
	return all
}

func sortOrders(of []*standing) {
	slices.SortFunc(of, func(a, b *standing) int { return compareKeys(a.record.order, b.record.order) })
}

func compareIDs(a, b sale.OrderID) int { return bytes.Compare(a[:], b[:]) }

// pairArgs are the keys of order rows as arguments of a statement.
func pairArgs(of []*standing) []any {
	args := make([]any, 0, 2*len(of))
	for _, o := range of {
		args = append(args, o.record.order.Buyer, o.record.order.ID[:])
	}
	return args
}
