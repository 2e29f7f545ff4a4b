package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"stockade/biz/sale"
)

// maxPromiseRounds bounds how often one chunk is tried and settled. Each round answers at least one take, or lost the
// race for units or a lock to another group.
const maxPromiseRounds = 8

var (
	// errMisfit says that some take of the chunk cannot be promised; settle finds out which.
	errMisfit = errors.New("the chunk does not fit as a whole")
	errRounds = fmt.Errorf("%w: other groups were faster %d times: ask again", sale.ErrRowLocked, maxPromiseRounds)
)

// skuError tells whose ledger row stood in the way.
type skuError struct {
	sku string
	err error
}

func (e *skuError) Error() string { return fmt.Sprintf("sku %s: %v", e.sku, e.err) }
func (e *skuError) Unwrap() error { return e.err }

// Promise decides every take; decisions come in the order of takes. ctx bounds all of it: what is not decided when it
// ends is NotTaken, or Undecided if its COMMIT was on the way. Takes of one order are one order: the first take that
// comes gets the row. sale.ErrRowLocked is the error of a take that is NotTaken because of its SKU's ledger row alone.
func (db *DB) Promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	g := newGroup(takes)
	for _, chunk := range chunks(g.first, db.maxBytes) {
		db.decide(ctx, terms{}, chunk)
	}
	return g.decisions()
}

// decide promises what fits of a chunk and refuses the rest, by name.
func (db *DB) decide(ctx context.Context, under terms, chunk []*member) {
	var waited error // for a lock in vain: the chunk is that SKU's alone from then on
	for range maxPromiseRounds {
		if len(chunk) == 0 {
			return
		}
		err := db.attempt(ctx, under, chunk)
		if errors.Is(err, errMisfit) || db.dialect.classify(err) == errDuplicate {
			chunk, err = db.settle(ctx, under, chunk)
			if err == nil {
				continue
			}
		}
		switch kind := db.dialect.classify(err); {
		case err == nil:
			return
		case errors.Is(err, errUndecided):
			refuseAll(chunk, sale.Undecided, err)
			return
		case kind == errData:
			db.bisect(ctx, under, chunk, err)
			return
		case kind == errLockWait || kind == errDeadlock:
			rest, others := isolate(chunk, err)
			if kind == errLockWait {
				err = rowLocked(err)
				waited = err
			}
			for _, part := range others {
				db.decide(ctx, under, part)
			}
			if len(others) == 0 && kind == errLockWait {
				refuseAll(chunk, sale.NotTaken, err)
				return
			}
			chunk = rest
		case waited != nil && ctx.Err() != nil: // the time ended while it waited again
			refuseAll(chunk, sale.NotTaken, waited)
			return
		default:
			refuseAll(chunk, sale.NotTaken, err)
			return
		}
	}
	refuseAll(chunk, sale.NotTaken, errRounds)
}

// rowLocked marks a lock wait that a ledger row caused. Any other may be for a lock on everything, such as SQLite's on its
// file, and stays as it is.
func rowLocked(err error) error {
	var named *skuError
	if !errors.As(err, &named) {
		return err
	}
	return fmt.Errorf("%w: %w", sale.ErrRowLocked, err)
}

// bisect finds the rows whose data the database refuses, without refusing their neighbours.
func (db *DB) bisect(ctx context.Context, under terms, chunk []*member, err error) {
	if len(chunk) == 1 {
		chunk[0].refuse(sale.Rejected, err)
		return
	}
	half := len(chunk) / 2
	db.decide(ctx, under, chunk[:half])
	db.decide(ctx, under, chunk[half:])
}

// isolate answers a lost lock: nobody waits for a SKU that somebody sits on but those who want it. It returns the SKU in
// trouble as rest, to be tried alone after the others. Without others the chunk is a single SKU already.
func isolate(chunk []*member, err error) (rest []*member, others [][]*member) {
	all := portions(chunk)
	if len(all) == 1 {
		return chunk, nil
	}
	var named *skuError
	if !errors.As(err, &named) {
		for _, p := range all[1:] {
			others = append(others, p.members)
		}
		return all[0].members, others
	}
	var other []*member
	for _, m := range chunk {
		if m.SKU == named.sku {
			rest = append(rest, m)
		} else {
			other = append(other, m)
		}
	}
	return rest, [][]*member{other}
}

// attempt promises the whole chunk in one transaction, or nothing.
func (db *DB) attempt(ctx context.Context, under terms, chunk []*member) error {
	all := portions(chunk)
	if under.carries == 0 && slices.ContainsFunc(all, func(p portion) bool { return p.mixed }) {
		return errMisfit
	}
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	// The ledger comes first: it serialises the SKU's promises, so that the limit query below sees all of them.
	for _, p := range all {
		fits, err := db.raisePromised(ctx, t, under, p)
		if err != nil {
			return &skuError{p.sku, err}
		}
		if !fits {
			return errMisfit
		}
	}
	now := db.clock.now()
	if err := db.insertOutbox(ctx, t, chunk, now); err != nil {
		return err
	}
	for _, p := range all {
		if err := db.checkLimits(ctx, t, p); err != nil {
			return err
		}
	}
	if err := db.faults.At(ctx, sale.PromiseWritten); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return err
	}
	for _, m := range chunk {
		m.share, m.token = m.Share, m.Token
		m.decision = sale.Decision{Outcome: sale.Promised, Order: m.order(now)}
	}
	return nil
}

func (m *member) order(now time.Time) sale.Order {
	return sale.Order{
		ID: m.Order, SKU: m.SKU, Buyer: m.Buyer, Quantity: m.Quantity,
		State: sale.OrderQueued, AcceptedAt: now, ExpiresAt: now.Add(m.Window).Truncate(time.Millisecond),
	}
}

func (db *DB) insertOutbox(ctx context.Context, t *txn, chunk []*member, now time.Time) error {
	const columns = 13
	values := make([]any, 0, columns*len(chunk))
	for _, m := range chunk {
		o := m.order(now)
		values = append(values, m.Order[:], m.SKU, m.Buyer, m.Quantity, int64(m.Share), m.Token.Epoch, m.Token.Change,
			outboxNew, 0, db.node, millis(now), millis(now), millis(o.ExpiresAt))
	}
	_, err := t.exec(ctx, bulk(db.sql.outboxInsert, len(chunk)), values...)
	return err
}

// checkLimits reads the live units of the portion's buyers, this transaction's rows among them.
func (db *DB) checkLimits(ctx context.Context, t *txn, p portion) error {
	names, limits := buyers(p.members)
	live, err := db.liveUnits(ctx, t, p.sku, names)
	if err != nil {
		return err
	}
	for buyer, units := range live {
		if units > limits[buyer] {
			return errMisfit
		}
	}
	return nil
}

// liveUnits sums what buyers hold of a SKU. It is right about promises only while the ledger row is held.
func (db *DB) liveUnits(ctx context.Context, q querier, sku string, names []string) (map[string]int64, error) {
	live := make(map[string]int64, len(names))
	type sum struct {
		buyer string
		units int64
	}
	arg := append([]any{sku}, asArgs(names)...)
	sums, err := collect(ctx, q, func(rows *sql.Rows) (s sum, err error) {
		return s, rows.Scan(&s.buyer, &s.units)
	}, inList(db.sql.outboxLive, len(names)), arg...)
	for _, s := range sums {
		live[s.buyer] = s.units
	}
	return live, err
}
