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

// CreateSKU writes a DRAFT and its ledger; sale.ErrExists when the id is taken, *sale.InputError for a field or a total
// out of range.
func (db *DB) CreateSKU(ctx context.Context, sku sale.SKU, total int64) error {
	if err := sku.Validate(); err != nil {
		return err
	}
	if total < 0 || total > sale.MaxTotal {
		return badTotal()
	}
	err := db.writing(ctx, func(t *txn) error {
		// The ledger before the SKU, as everywhere.
		if _, err := t.exec(ctx, db.sql.ledgerInsert, sku.ID, sale.ModeRedis, sale.Steady, total); err != nil {
			return err
		}
		_, err := t.exec(ctx, db.sql.skuInsert, sku.ID, sale.Draft, millis(sku.OpensAt), millis(sku.ClosesAt), sku.Limit,
			sku.PaymentWindow.Milliseconds(), sku.Slots, sku.ReservePct, sku.TokenRequired, millis(db.clock.now()))
		return err
	})
	if db.dialect.classify(err) == errDuplicate {
		return fmt.Errorf("sku %s: %w", sku.ID, sale.ErrExists)
	}
	return err
}

func badTotal() error {
	return sale.BadInput("total", fmt.Sprintf("must be a whole number from 0 to %d", sale.MaxTotal))
}

// Listing reads one SKU; sale.ErrNotFound.
func (db *DB) Listing(ctx context.Context, sku string) (sale.Listing, error) {
	return db.listing(ctx, db.read, sku)
}

func (db *DB) listing(ctx context.Context, q querier, sku string) (sale.Listing, error) {
	all, err := collect(ctx, q, scanListing, db.sql.listing, sku)
	if err == nil && len(all) == 0 {
		err = sale.ErrNotFound
	}
	if err != nil {
		return sale.Listing{}, err
	}
	return all[0], nil
}

// Listings reads at most limit SKUs in the order of their ids, after the given one.
func (db *DB) Listings(ctx context.Context, after string, limit int) ([]sale.Listing, error) {
	return collect(ctx, db.read, scanListing, db.sql.listings, after, limit)
}

func scanListing(rows *sql.Rows) (l sale.Listing, err error) {
	var opens, closes, window, progress int64
	s, led := &l.SKU, &l.Ledger
	err = rows.Scan(&s.ID, &s.State, &opens, &closes, &s.Limit, &window, &s.Slots, &s.ReservePct, &s.TokenRequired,
		&led.Epoch, &led.LiveEpoch, &led.LaidEpoch, &led.LaidGate, &led.Mode, &led.State, &progress,
		&led.Total, &led.Promised, &led.Sold, &led.Changes, &led.LaidSlots)
	s.OpensAt, s.ClosesAt = fromMillis(opens), fromMillis(closes)
	s.PaymentWindow = time.Duration(window) * time.Millisecond
	led.ProgressAt = fromMillis(progress)
	return l, err
}

// SetState moves a SKU from one of the given states; *sale.StateError when it is in another one, sale.ErrNotFound.
func (db *DB) SetState(ctx context.Context, sku string, from []sale.SKUState, to sale.SKUState) error {
	return db.writing(ctx, func(t *txn) error {
		state, err := db.lockSKU(ctx, t, sku)
		if err != nil {
			return err
		}
		if !slices.Contains(from, state) {
			return &sale.StateError{SKU: sku, State: state, Want: "become " + string(to)}
		}
		_, err = t.exec(ctx, db.sql.skuState, to, sku)
		return err
	})
}

func (db *DB) lockSKU(ctx context.Context, t *txn, sku string) (state sale.SKUState, err error) {
	err = t.QueryRowContext(ctx, db.sql.skuLock, sku).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		err = sale.ErrNotFound
	}
	return state, err
}

// Decided looks takes' ids up while holding the ledger row, so that no promise of this SKU is half-way: ids that have no
// outbox row of this SKU are missing from the map. sale.ErrNotFound for an unknown SKU.
func (db *DB) Decided(
	ctx context.Context, sku string, ids []sale.OrderID,
) (decided map[sale.OrderID]sale.Holding, err error) {
	err = db.writing(ctx, func(t *txn) error {
		var epoch int64
		err := t.QueryRowContext(ctx, db.sql.ledgerShare, sku).Scan(&epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return sale.ErrNotFound
		}
		if err != nil {
			return err
		}
		decided, err = db.holdingsByID(ctx, t, sku, ids)
		return err
	})
	return decided, err
}

// holdingsByID leaves out rows of other SKUs: their units are not this SKU's.
func (db *DB) holdingsByID(
	ctx context.Context, q querier, sku string, ids []sale.OrderID,
) (map[sale.OrderID]sale.Holding, error) {
	found, err := db.recordsByID(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	all := make(map[sale.OrderID]sale.Holding, len(found))
	for id, r := range found {
		if r.order.SKU == sku {
			all[id] = r.holding()
		}
	}
	return all, nil
}
