package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// Bounds of a reshare.
const (
	sealFirst    = 250  // undecided takes of each share told at first, when several shares answer in one pipeline
	sealPage     = 1000 // undecided takes of one share told in one later step
	holdingsPage = 5000 // outbox rows read in one step of a full reshare
	sharesAtOnce = 8    // shares worked on at the same time
	reshareTries = 3    // epochs one call may use up when steps fail
	carryPage    = 500  // acknowledged takes promised in one step
)

// Resharer lays the truth out over the shares anew. Whatever the gate forgot, repeated or got wrong ends here.
type Resharer struct {
	cfg     Config
	ledgers Ledgers
	gate    Gate
	layer   Layer
	hints   Hints
	relay   Relay
	faults  sale.Faults
	log     *slog.Logger
	records *reshareLog
}

// ResharerParts are what a Resharer is made of.
type ResharerParts struct {
	Ledgers Ledgers
	Gate    Gate
	Layer   Layer
	Hints   Hints
	Relay   Relay       // nil: carried orders are left to the relay's sweeper
	Faults  sale.Faults // nil: sale.NoFaults
	Log     *slog.Logger
}

// NewResharer returns the use case.
func NewResharer(cfg Config, p ResharerParts) *Resharer {
	return &Resharer{
		cfg: cfg, ledgers: p.Ledgers, gate: p.Gate, layer: p.Layer, hints: p.Hints, relay: relayOr(p.Relay), faults: faultsOr(p.Faults),
		log: p.Log, records: &reshareLog{},
	}
}

// ReshareOrder says why a reshare runs and what it changes. Zero fields change nothing.
type ReshareOrder struct {
	Reason   string    // for the log
	AddTotal int64     // units added to the total, may be negative
	Slots    int       // another slot count
	Mode     sale.Mode // another way of purchases
	Full     bool      // lay out every buyer and order, also if the shares look whole
	Tail     bool      // lay everything that is left into the reserve
	Spread   bool      // lay everything that is left over the slots, and nothing into the reserve; not with Tail
	Seen     int64     // the epoch that the order is about: sale.ErrConflict under any other one; 0: any
}

// ErrTotalUnknown says that the total may have been changed although the call did not succeed: MySQL's answer got lost, or
// the shares could not be laid out afterwards.
var ErrTotalUnknown = errors.New("the total may have been changed: look before asking again")

// Run reshares a SKU. sale.ErrConflict: another reshare began meanwhile, it is the other one's work now, and this one has
// not changed anything; when it has, the other one lays that out, and Run returns nil. *sale.InputError: the
// total would fall below what is promised; nothing was changed. ErrTotalUnknown. After any other error the total is as it
// was. After both the shares may be sealed, purchases get BUSY, and the next reshare mends it; the total is changed at
// most once.
func (r *Resharer) Run(ctx context.Context, sku string, order ReshareOrder) error {
	_, err := r.Reshare(ctx, sku, order)
	return err
}

// Reshare is Run that also tells what the reshare found. The record is empty when another one overtook it.
func (r *Resharer) Reshare(ctx context.Context, sku string, order ReshareOrder) (ReshareRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.ReshareTimeoutMs))
	defer cancel()
	var err, unknown error
	changed := false // the total is
	kept := false    // what the order changes is in the ledger, whoever lays it out
	for range reshareTries {
		var reached stage
		var record ReshareRecord
		record, reached, err = r.once(ctx, sku, order)
		changed = changed || (order.AddTotal != 0 && reached == begun)
		kept = changed || (reached == begun && (order.Slots != 0 || order.Mode != ""))
		var bad *sale.InputError
		switch {
		case err == nil:
			return record, unknown
		case kept && errors.Is(err, sale.ErrConflict):
			return record, nil
		case errors.Is(err, sale.ErrConflict), errors.Is(err, sale.ErrNotFound), errors.As(err, &bad):
			if unknown != nil {
				err = fmt.Errorf("%w (%v)", unknown, err) // who is told of a conflict asks again
			}
			return record, err
		}
		r.log.WarnContext(ctx, "reshare failed", "sku", sku, "reason", order.Reason, "error", err)
		if order.AddTotal != 0 && reached == maybeBegun {
			unknown = ErrTotalUnknown
		}
		if ctx.Err() != nil {
			break
		}
		if reached != notBegun {
			order.AddTotal = 0 // it must not be added twice
			order.Seen = 0     // the epoch is this call's own
			// Slots and mode are in the ledger by now, if the commit went through, and the SKU is not live: the next try
			// is a full one anyhow.
		}
	}
	if changed {
		unknown = ErrTotalUnknown
	}
	return ReshareRecord{}, fmt.Errorf("reshare of %s: %w", sku, errors.Join(err, unknown))
}

// stage is how far a reshare came before it failed.
type stage int

const (
	notBegun   stage = iota // the ledger is as it was
	maybeBegun              // the ledger's commit got no answer
	begun
)

// once is one reshare under one epoch.
func (r *Resharer) once(ctx context.Context, sku string, order ReshareOrder) (ReshareRecord, stage, error) {
	before, err := r.ledgers.Listing(ctx, sku)
	if err != nil {
		return ReshareRecord{}, notBegun, err
	}
	if order.Seen != 0 && before.Ledger.Epoch != order.Seen {
		return ReshareRecord{}, notBegun, sale.ErrConflict
	}
	bypassed := before.Ledger.Mode == sale.ModeMySQL && order.Mode != sale.ModeRedis
	gate := before.Ledger.LaidGate
	if !bypassed {
		if gate, err = r.layer.Identity(ctx); err != nil {
			return ReshareRecord{}, notBegun, err
		}
	}
	start := time.Now()
	snap, err := r.ledgers.BeginReshare(ctx, sku, before.Ledger.Epoch,
		sale.LedgerChange{AddTotal: order.AddTotal, Slots: order.Slots, Mode: order.Mode})
	if err != nil {
		return ReshareRecord{}, maybeBegun, err
	}
	job := &reshare{Resharer: r, snap: snap, listing: snap.Listing(), tail: order.Tail, spread: order.Spread, added: order.AddTotal}
	job.full = order.Full || !before.Ledger.Live() || gate != before.Ledger.LaidGate ||
		job.listing.Slots != before.Slots || job.listing.Ledger.Mode != before.Ledger.Mode
	job.lost = !before.Ledger.Live() || gate != before.Ledger.LaidGate
	if err = r.faults.At(ctx, sale.ReshareRaised); err == nil && !bypassed {
		err = job.run(ctx)
	}
	err = errors.Join(err, snap.Close())
	if err == nil {
		// Under mode mysql nothing was laid: the way back is a full reshare.
		err = r.ledgers.FinishReshare(ctx, sku, job.epoch(), job.full && !bypassed, gate)
	}
	if err != nil {
		return ReshareRecord{}, begun, err
	}
	record := job.record(order.Reason, time.Since(start))
	r.finished(ctx, record)
	return record, begun, nil
}

// finished tells log, nodes and whoever asks for the records. The reshare stands, whatever fails here.
func (r *Resharer) finished(ctx context.Context, rec ReshareRecord) {
	r.records.add(rec)
	r.log.InfoContext(ctx, "reshare done", "sku", rec.SKU, "reason", rec.Reason, "kind", rec.Kind(), "epoch", rec.Epoch,
		"left", rec.Left, "drift", rec.Drift, "carried", rec.Carried, "took", rec.Took)
	if err := r.faults.At(ctx, sale.ReshareFinished); err != nil {
		return // no node was hinted: they look by themselves
	}
	if err := r.hints.Send(ctx, rec.SKU); err != nil {
		r.log.DebugContext(ctx, "hint not sent", "sku", rec.SKU, "error", err) // nodes look by themselves
	}
}

// Records lists the reshares that this node finished last, at most reshareRecords, oldest first; of one SKU, or of all
// with an empty id.
func (r *Resharer) Records(sku string) []ReshareRecord { return r.records.list(sku) }
