package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// Bounds of the look at start-up.
const (
	restorePage  = 100
	maxTroubles  = 10                     // errors told of one look at all SKUs
	restoreWait  = 200 * time.Millisecond // between looks at a reshare that another node is running
	reshareAlive = 2 * time.Second        // a reshare without a sign of life for this long is taken over
)

// Restorer brings the gate back to the truth when a node starts: after Redis lost its keys, came back with old ones, or
// a reshare was left half-way.
type Restorer struct {
	ledgers  Ledgers
	gate     Gate
	layer    Layer
	resharer *Resharer
	audit    *AuditLog
	log      *slog.Logger
}

// NewRestorer returns the use case. A nil audit log records nothing.
func NewRestorer(ledgers Ledgers, gate Gate, layer Layer, resharer *Resharer, audit *AuditLog, log *slog.Logger) *Restorer {
	return &Restorer{ledgers: ledgers, gate: gate, layer: layer, resharer: resharer, audit: audit, log: log}
}

// ErrPartlyRestored says that every SKU was looked at, and some could not be restored.
var ErrPartlyRestored = errors.New("some SKUs are not restored")

// Run looks at every SKU with stock and reshares those whose shares do not match. It raises no epoch for a SKU of
// which some share does not answer: one sick Redis node must not shut a sale that runs on the others.
func (r *Restorer) Run(ctx context.Context) error {
	var troubles []error
	for after := ""; ; {
		page, err := r.ledgers.Listings(ctx, after, restorePage)
		if err != nil {
			return errors.Join(append(troubles, err)...)
		}
		for _, listing := range page {
			if err := r.restore(ctx, listing); err != nil && len(troubles) < maxTroubles {
				troubles = append(troubles, fmt.Errorf("sku %s: %w", listing.ID, err))
			}
		}
		if ctx.Err() != nil {
			return errors.Join(append(troubles, ctx.Err())...)
		}
		if len(page) < restorePage {
			if len(troubles) > 0 {
				return fmt.Errorf("%w: %w", ErrPartlyRestored, errors.Join(troubles...))
			}
			return nil
		}
		after = page[len(page)-1].ID
	}
}

func (r *Restorer) restore(ctx context.Context, l sale.Listing) error {
	var sign stalled
	for keepsShares(l) {
		if l.Ledger.State == sale.Resharing && !sign.look(l.Ledger, time.Now()) {
			var err error
			if l, err = r.again(ctx, l.ID); err != nil {
				return err
			}
			continue
		}
		why, err := r.inspect(ctx, l)
		if err != nil || why == "" {
			return err
		}
		reason := "start: " + why
		err = r.resharer.Run(ctx, l.ID, ReshareOrder{Reason: reason, Full: true, Seen: l.Ledger.Epoch})
		if err == nil {
			r.audit.reshared(ctx, l.ID, reason)
		}
		if !errors.Is(err, sale.ErrConflict) {
			return err
		}
		if l, err = r.again(ctx, l.ID); err != nil {
			return err
		}
	}
	return nil
}

// keepsShares tells whether the gate should hold whole shares of a SKU. Those of a closed one still take what its orders
// give back, until it is closed out; under path mysql nobody asks them.
func keepsShares(l sale.Listing) bool {
	return (l.State.HasStock() || l.State == sale.Closed) && (l.Ledger.Mode != sale.ModeMySQL || !l.Ledger.Live())
}

// inspect looks at all shares of a SKU.
func (r *Restorer) inspect(ctx context.Context, l sale.Listing) (string, error) {
	if !l.Ledger.Live() {
		return halfWay, nil
	}
	figures, err := r.gate.Peek(ctx, l.ID, l.Slots)
	if err != nil {
		return "", err
	}
	gate, err := r.layer.Identity(ctx)
	if err != nil {
		return "", err
	}
	return mismatch(figures, gate, l), nil
}

// again waits a moment for the node that is resharing and reads the SKU anew.
func (r *Restorer) again(ctx context.Context, sku string) (sale.Listing, error) {
	select {
	case <-ctx.Done():
		return sale.Listing{}, ctx.Err()
	case <-time.After(restoreWait):
		return r.ledgers.Listing(ctx, sku)
	}
}

// mismatch says why the shares need a reshare; empty when they do not. gate is what the gate is now.
func mismatch(figures []sale.Figures, gate string, l sale.Listing) string {
	for _, f := range figures {
		switch {
		case f.Gone:
			return fmt.Sprintf("share %s is gone", f.Share)
		case f.Sealed || f.Epoch != l.Ledger.LiveEpoch:
			return fmt.Sprintf("share %s is of epoch %d, live is %d", f.Share, f.Epoch, l.Ledger.LiveEpoch)
		}
	}
	if gate != l.Ledger.LaidGate {
		return "Redis restarted or failed over"
	}
	return ""
}

// halfWay is the mismatch of a SKU whose epoch was raised and never became live.
const halfWay = "a reshare was left half-way"

// stalled tells how long a reshare shows no sign of life. Only changes count: the sign's time is the database's, ours may
// differ.
type stalled struct {
	epoch    int64
	progress time.Time
	since    time.Time
}

// look notes what the ledger says at now and tells whether the reshare is dead.
func (s *stalled) look(l sale.Ledger, now time.Time) bool {
	if s.since.IsZero() || s.epoch != l.Epoch || !s.progress.Equal(l.ProgressAt) {
		*s = stalled{epoch: l.Epoch, progress: l.ProgressAt, since: now}
	}
	return now.Sub(s.since) >= reshareAlive
}
