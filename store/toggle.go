package store

import (
	"context"
	"database/sql"
	"fmt"

	"stockade/biz/sale"
)

const maxReason = 1024 // bytes, of toggles and of audit lines

// Toggles lists those that are set and not expired by the clock of the database, by name and scope.
func (db *DB) Toggles(ctx context.Context) ([]sale.Toggle, error) {
	return collect(ctx, db.read, func(rows *sql.Rows) (t sale.Toggle, err error) {
		var until, changed int64
		err = rows.Scan(&t.Name, &t.Scope, &t.Value, &t.Reason, &t.Actor, &until, &changed)
		t.Until, t.ChangedAt = fromMillis(until), fromMillis(changed)
		return t, err
	}, db.sql.toggleList, millis(db.clock.now()))
}

// SetToggle stores a toggle over the one with its name and scope. ChangedAt is the database's time, whatever the caller
// says. *sale.InputError naming the field that is wrong.
func (db *DB) SetToggle(ctx context.Context, to sale.Toggle) error {
	if err := checkToggle(to); err != nil {
		return err
	}
	return db.writing(ctx, func(t *txn) error {
		now := millis(db.clock.now())
		_, err := t.exec(ctx, db.sql.toggleSet, to.Name, to.Scope, to.Value, to.Reason, to.Actor, millis(to.Until), now)
		return err
	})
}

// ClearToggle forgets what is stored of a toggle for a SKU, or for all with an empty scope. One that is not stored is
// forgotten already.
func (db *DB) ClearToggle(ctx context.Context, name, scope string) error {
	return db.writing(ctx, func(t *txn) error {
		_, err := t.exec(ctx, db.sql.toggleClear, name, scope)
		return err
	})
}

func checkToggle(t sale.Toggle) error {
	if err := t.Check(); err != nil {
		return err
	}
	if t.Reason == "" || len(t.Reason) > maxReason {
		return sale.BadInput("reason", fmt.Sprintf("must be of 1 to %d bytes", maxReason))
	}
	return checkActor(t.Actor)
}
