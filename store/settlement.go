package store

import (
	"context"
	"errors"
	"fmt"

	"stockade/biz/sale"
)

const (
	// maxSettleRounds bounds how often one group of changes is tried. Each round lost a lock, or met rows that somebody
	// wrote after it had looked.
	maxSettleRounds = 8
	// settleBytes is what one change writes at most, beside its texts: an order row, a restock row, and its share of
	// the notices, with the longest SKU and buyer.
	settleBytes = 2048
)

// errDisagree says that an order's rows contradict each other, which no settlement makes them do. It is left to the
// reconciliation: whatever a settlement did here, it could give units back twice.
var errDisagree = errors.New("the order's rows do not agree: reconcile the SKU")

// edit is one change on its way to its outcome.
type edit struct {
	sale.Change
	sku     string // of the order, once it is known
	settled sale.Settled
}

func (e *edit) answer(o sale.ChangeOutcome, order sale.Order) {
	e.settled = sale.Settled{Outcome: o, Order: order}
}

func (e *edit) fail(o sale.ChangeOutcome, err error) { e.settled = sale.Settled{Outcome: o, Err: err} }

// Settle decides every change; outcomes come in the order of changes, and several changes of one order are decided in
// that order, each on what the one before left. At most 500 changes share a transaction. ctx bounds all of it: what is
// not committed when it ends is NotChanged, or ChangeUnknown if its COMMIT was on the way. A change whose data is
// refused is NotChanged for ever, with an *sale.InputError where it can be known beforehand. Restock.Seq is 0 here.
func (db *DB) Settle(ctx context.Context, changes []sale.Change) []sale.Settled {
	edits := make([]edit, len(changes))
	var valid []*edit
	for i, c := range changes {
		edits[i].Change = c
		if err := checkChange(c); err != nil {
			edits[i].fail(sale.NotChanged, err)
			continue
		}
		valid = append(valid, &edits[i])
	}
	for _, group := range settleGroups(valid, db.maxBytes) {
		db.settleGroup(ctx, group)
	}
	all := make([]sale.Settled, len(edits))
	for i := range edits {
		all[i] = edits[i].settled
	}
	return all
}

func checkChange(c sale.Change) error {
	switch {
	case c.Kind < sale.Pay || c.Kind > sale.Compensate:
		return sale.BadInput("kind", "must be a change of an order")
	case c.Kind == sale.Pay && (c.Payment == "" || len(c.Payment) > sale.MaxPaymentID):
		return sale.BadInput("payment_id", fmt.Sprintf("must have 1 to %d bytes", sale.MaxPaymentID))
	}
	return nil
}

// settleGroups cuts edits into what one transaction takes.
func settleGroups(of []*edit, maxBytes int) [][]*edit {
	var all [][]*edit
	start, size := 0, 0
	for i, e := range of {
		bytes := settleBytes + len(e.Payment) + len(e.Actor)
		if i-start == maxRows || (i > start && size+bytes > maxBytes) {
			all = append(all, of[start:i:i])
			start, size = i, 0
		}
		size += bytes
	}
	if start < len(of) {
		all = append(all, of[start:])
	}
	return all
}

// settleGroup decides a group in one transaction, or in several when one change or one SKU stands in the others' way.
func (db *DB) settleGroup(ctx context.Context, group []*edit) {
	var err error
	for range maxSettleRounds {
		err = db.settleOnce(ctx, group)
		switch kind := db.dialect.classify(err); {
		case err == nil:
			return
		case errors.Is(err, errUndecided):
			failAll(group, sale.ChangeUnknown, err)
			return
		case kind == errData || errors.Is(err, errDisagree):
			db.bisectSettle(ctx, group, err)
			return
		case kind == errDuplicate: // somebody wrote the row first: decide anew, knowing it
		case kind == errLockWait || kind == errDeadlock:
			stuck, others := asideSKU(group, err)
			if len(others) == 0 && kind == errLockWait {
				failAll(group, sale.NotChanged, err)
				return
			}
			if len(others) > 0 {
				db.settleGroup(ctx, others)
			}
			group = stuck
		default:
			failAll(group, sale.NotChanged, err)
			return
		}
	}
	if db.dialect.classify(err) == errDuplicate && len(group) > 1 {
		db.bisectSettle(ctx, group, err)
		return
	}
	failAll(group, sale.NotChanged, fmt.Errorf("gave way %d times: %w", maxSettleRounds, err))
}

// bisectSettle finds the changes that cannot be written, without failing their neighbours.
func (db *DB) bisectSettle(ctx context.Context, group []*edit, err error) {
	if len(group) == 1 {
		group[0].fail(sale.NotChanged, err)
		return
	}
	half := len(group) / 2
	db.settleGroup(ctx, group[:half])
	db.settleGroup(ctx, group[half:])
}

// asideSKU parts a group at the SKU whose ledger row could not be had, so that nobody waits for it but those who want
// it.
func asideSKU(group []*edit, err error) (stuck, others []*edit) {
	var named *skuError
	if !errors.As(err, &named) {
		return group, nil
	}
	for _, e := range group {
		if e.sku == named.sku {
			stuck = append(stuck, e)
		} else {
			others = append(others, e)
		}
	}
	return stuck, others
}

func failAll(group []*edit, o sale.ChangeOutcome, err error) {
	for _, e := range group {
		e.fail(o, err)
	}
}

// settleOnce decides and writes the whole group in one transaction, or nothing.
func (db *DB) settleOnce(ctx context.Context, group []*edit) error {
	t, err := db.beginOn(ctx, db.settling)
	if err != nil {
		return err
	}
	defer t.close()
	s, err := db.openSettlement(ctx, t, group)
	if err != nil {
		return err
	}
	for _, e := range group {
		s.decide(e)
	}
	if s.nothing() {
		return nil
	}
	if err := db.writeSettlement(ctx, t, s); err != nil {
		return err
	}
	if err := db.faults.At(ctx, sale.SettlementWritten); err != nil {
		return err
	}
	return t.commit(ctx)
}
