package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"stockade/biz/sale"
)

// BeginReshare raises the epoch if it is still seen, makes the change, and opens a snapshot in which every promise of an
// older epoch is decided. *sale.InputError for total when it would fall below promised or leave its
// range, sale.ErrConflict when the epoch moved, sale.ErrNotFound. After any other error the epoch may have been raised:
// read the listing.
//
// Two connections, and their order is the point. The first raises the epoch and holds the ledger row: promises that
// came before it have committed, promises that come after it wait. While it holds the row, the second opens its
// snapshot, which therefore has all of the former and none of the latter. Then the first commits, and those that
// waited find the epoch raised and are fenced. Were the first to commit before the snapshot, a closing could slip in
// between and be counted neither by the reshare nor after it; were the second to open before the row is held, a
// promise could.
func (db *DB) BeginReshare(ctx context.Context, sku string, seen int64, change sale.LedgerChange) (sale.Snapshot, error) {
	// Both connections before the lock: waiting for a free one with the row held would stop the sale, and both from
	// pools in this order, so that reshares cannot wait for each other in a circle.
	reading, err := db.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	snap := &snapshot{db: db, t: &txn{Conn: reading, dialect: db.dialect}}
	if err := db.raise(ctx, snap, sku, seen, change); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, nil
}

// raise is the part of BeginReshare between having a connection for the snapshot and having the snapshot.
func (db *DB) raise(ctx context.Context, snap *snapshot, sku string, seen int64, change sale.LedgerChange) error {
	t, err := db.beginPatient(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	l, err := db.lockLedger(ctx, t, sku)
	if err != nil {
		return err
	}
	total := l.Total + change.AddTotal
	switch {
	case l.Epoch != seen:
		return fmt.Errorf("sku %s: epoch %d is %d by now: %w", sku, seen, l.Epoch, sale.ErrConflict)
	case total < l.Promised:
		return sale.BadInput("total", fmt.Sprintf("must be at least %d, the units promised already", l.Promised))
	case change.AddTotal < -sale.MaxTotal || change.AddTotal > sale.MaxTotal || total > sale.MaxTotal:
		return badTotal()
	case change.Slots < 0 || change.Slots > sale.MaxSlots:
		return sale.BadInput("slots", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxSlots))
	}
	before, err := db.listing(ctx, t, sku)
	if err != nil {
		return err
	}
	if change.Slots > 0 {
		if _, err := t.exec(ctx, db.sql.skuSlots, change.Slots, sku); err != nil {
			return err
		}
	}
	// Shares beyond the new count keep their keys until a full reshare is through.
	laid := max(before.Ledger.LaidSlots, before.Slots, change.Slots)
	_, err = t.exec(ctx, db.sql.ledgerRaise,
		total, cmp.Or(change.Mode, l.Mode), laid, sale.Resharing, millis(db.clock.now()), sku)
	if err != nil {
		return err
	}
	if snap.listing, err = db.listing(ctx, t, sku); err != nil {
		return err
	}
	if err := snap.open(ctx); err != nil {
		return err
	}
	return t.commit(ctx)
}

// beginPatient is begin for a reshare, which queues behind a hot SKU's promises for longer than a promise may. Its
// connection does not go back to the pool, where the longer wait would be somebody else's.
func (db *DB) beginPatient(ctx context.Context) (*txn, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &txn{Conn: conn, dialect: db.dialect}
	if db.dialect.patience != "" {
		t.discard = true
		if _, err := t.ExecContext(ctx, db.dialect.patience, db.cfg.ReshareLockWaitMs/1000); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, t.start(ctx, db.dialect.begin)
}

// ReshareProgress is the reshare's sign of life; sale.ErrConflict when another one began.
func (db *DB) ReshareProgress(ctx context.Context, sku string, epoch int64) error {
	return db.writing(ctx, func(t *txn) error {
		if err := db.lockEpoch(ctx, t, sku, epoch); err != nil {
			return err
		}
		_, err := t.exec(ctx, db.sql.ledgerProgress, millis(db.clock.now()), sku)
		return err
	})
}

// FinishReshare makes the epoch live, moves a DRAFT to LOADED, and, when the reshare was full, records laid_epoch and
// the gate's identity. sale.ErrConflict when another one began. It is safe to repeat.
func (db *DB) FinishReshare(ctx context.Context, sku string, epoch int64, full bool, gate string) error {
	return db.writing(ctx, func(t *txn) error {
		if err := db.lockEpoch(ctx, t, sku, epoch); err != nil {
			return err
		}
		if _, err := t.exec(ctx, db.sql.ledgerFinish, sale.Steady, millis(db.clock.now()), sku); err != nil {
			return err
		}
		if full {
			if _, err := t.exec(ctx, db.sql.ledgerLaid, gate, sku); err != nil {
				return err
			}
		}
		state, err := db.lockSKU(ctx, t, sku)
		if err != nil || state != sale.Draft {
			return err
		}
		_, err = t.exec(ctx, db.sql.skuState, sale.Loaded, sku)
		return err
	})
}

// lockEpoch holds the ledger row if the reshare that has this epoch is still the last one.
func (db *DB) lockEpoch(ctx context.Context, t *txn, sku string, epoch int64) error {
	l, err := db.lockLedger(ctx, t, sku)
	if err != nil {
		return err
	}
	if l.Epoch != epoch {
		return fmt.Errorf("sku %s: reshare %d was overtaken by %d: %w", sku, epoch, l.Epoch, sale.ErrConflict)
	}
	return nil
}
