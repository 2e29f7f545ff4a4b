package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stockade/biz/sale"
)

// Bounds of a reshare.
const (
	sealPage     = 1000 // undecided takes told in one step
	holdingsPage = 5000 // outbox rows read in one step of a full reshare
	sharesAtOnce = 8    // shares worked on at the same time
	reshareTries = 3    // epochs one call may use up when steps fail
)

// Resharer lays the truth out over the shares anew. Whatever the gate forgot, repeated or got wrong ends here.
type Resharer struct {
	cfg     Config
	ledgers Ledgers
	layer   Layer
	hints   Hints
	log     *slog.Logger
}

// NewResharer returns the use case.
func NewResharer(cfg Config, ledgers Ledgers, layer Layer, hints Hints, log *slog.Logger) *Resharer {
	return &Resharer{cfg: cfg, ledgers: ledgers, layer: layer, hints: hints, log: log}
}

// ReshareOrder says why a reshare runs.
type ReshareOrder struct {
	Reason   string // for the log
	AddTotal int64  // units added to the total, may be negative
	Full     bool   // lay out every buyer and order, also if the shares look whole
}

// ErrTotalUnknown says that the total may have been changed although the call did not succeed: MySQL's answer got lost, or
// the shares could not be laid out afterwards.
var ErrTotalUnknown = errors.New("the total may have been changed: look before asking again")

// Run reshares a SKU. sale.ErrConflict: another reshare began meanwhile, it is the other one's work now, and this one has
// not changed the total; when it has, the other one lays the new total out, and Run returns nil. *sale.InputError: the
// total would fall below what is promised; nothing was changed. ErrTotalUnknown. After any other error the total is as it
// was. After both the shares may be sealed, purchases get BUSY, and the next reshare mends it; the total is changed at
// most once.
func (r *Resharer) Run(ctx context.Context, sku string, order ReshareOrder) error {
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.ReshareTimeoutMs))
	defer cancel()
	var err, unknown error
	changed := false // the total is
	for range reshareTries {
		var reached stage
		reached, err = r.once(ctx, sku, order)
		changed = changed || (order.AddTotal != 0 && reached == begun)
		var bad *sale.InputError
		switch {
		case err == nil:
			return unknown
		case changed && errors.Is(err, sale.ErrConflict):
			return nil
		case errors.Is(err, sale.ErrConflict), errors.Is(err, sale.ErrNotFound), errors.As(err, &bad):
			return errors.Join(err, unknown)
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
		}
	}
	if changed {
		unknown = ErrTotalUnknown
	}
	return fmt.Errorf("reshare of %s: %w", sku, errors.Join(err, unknown))
}

// stage is how far a reshare came before it failed.
type stage int

const (
	notBegun   stage = iota // the ledger is as it was
	maybeBegun              // the ledger's commit got no answer
	begun
)

// once is one reshare under one epoch.
func (r *Resharer) once(ctx context.Context, sku string, order ReshareOrder) (stage, error) {
	before, err := r.ledgers.Listing(ctx, sku)
	if err != nil {
		return notBegun, err
	}
	gate, err := r.layer.Identity(ctx)
	if err != nil {
		return notBegun, err
	}
	start := time.Now()
	snap, err := r.ledgers.BeginReshare(ctx, sku, before.Ledger.Epoch, sale.LedgerChange{AddTotal: order.AddTotal})
	if err != nil {
		return maybeBegun, err
	}
	job := &reshare{Resharer: r, snap: snap, listing: snap.Listing()}
	job.full = order.Full || gate != before.Ledger.LaidGate || !before.Ledger.Live()
	err = job.run(ctx)
	err = errors.Join(err, snap.Close())
	if err == nil {
		err = r.ledgers.FinishReshare(ctx, sku, job.epoch(), job.full, gate)
	}
	if err != nil {
		return begun, err
	}
	r.log.InfoContext(ctx, "reshare done", "sku", sku, "reason", order.Reason, "full", job.full,
		"epoch", job.epoch(), "left", job.listing.Ledger.Available(), "took", time.Since(start))
	if err := r.hints.Send(ctx, sku); err != nil {
		r.log.DebugContext(ctx, "hint not sent", "sku", sku, "error", err) // nodes look by themselves
	}
	return begun, nil
}

// reshare is one reshare under way.
type reshare struct {
	*Resharer
	snap    sale.Snapshot
	listing sale.Listing
	full    bool
	sealed  []sale.SealedShare // in the order of sale.Shares
	reading sync.Mutex         // a snapshot is for one goroutine at a time
}

func (j *reshare) epoch() int64 { return j.listing.Ledger.Epoch }

func (j *reshare) run(ctx context.Context) error {
	shares := sale.Shares(j.listing.Slots)
	j.sealed = make([]sale.SealedShare, len(shares))
	if err := each(ctx, shares, j.seal); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	for _, s := range j.sealed {
		// A share that is gone, or older than the live epoch (an old snapshot came back), proves nothing about its buyers.
		if s.Gone || s.Epoch < j.listing.Ledger.LiveEpoch {
			j.full = true
		}
	}
	if j.full {
		if err := j.layAll(ctx, shares); err != nil {
			return fmt.Errorf("full: %w", err)
		}
	} else if err := each(ctx, shares, j.tell); err != nil {
		return fmt.Errorf("light: %w", err)
	}
	left := sale.Layout(j.listing.Ledger.Available(), j.listing.Slots, j.listing.ReservePct)
	err := each(ctx, shares, func(ctx context.Context, i int, share sale.Share) error {
		return j.layer.Open(ctx, j.listing.ID, share, j.epoch(), left[i])
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

func (j *reshare) seal(ctx context.Context, i int, share sale.Share) (err error) {
	j.sealed[i], err = j.layer.Seal(ctx, j.listing.ID, share, j.epoch(), sealPage)
	return err
}

// tell settles what a share has undecided: what the snapshot holds is kept, the rest can never be promised any more.
func (j *reshare) tell(ctx context.Context, i int, share sale.Share) error {
	for page := j.sealed[i]; ; {
		if len(page.Pending) > 0 {
			decided, err := j.decided(ctx, page.Pending)
			if err != nil {
				return err
			}
			var kept, dropped []sale.PendingTake
			for _, take := range page.Pending {
				if row, ok := decided[take.Order]; ok && row.Share == share && row.Token == take.Token {
					kept = append(kept, take)
				} else {
					dropped = append(dropped, take)
				}
			}
			if err := j.layer.Tell(ctx, j.listing.ID, share, j.epoch(), kept, dropped); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		if err := j.ledgers.ReshareProgress(ctx, j.listing.ID, j.epoch()); err != nil {
			return err
		}
		var err error
		if page, err = j.layer.Seal(ctx, j.listing.ID, share, j.epoch(), sealPage); err != nil {
			return err
		}
	}
}

func (j *reshare) decided(ctx context.Context, takes []sale.PendingTake) (map[sale.OrderID]sale.Holding, error) {
	j.reading.Lock()
	defer j.reading.Unlock()
	return j.snap.Decided(ctx, orderIDs(takes))
}

// layAll wipes the shares and lays every order of the snapshot out at its buyer's home.
func (j *reshare) layAll(ctx context.Context, shares []sale.Share) error {
	err := each(ctx, shares, func(ctx context.Context, _ int, share sale.Share) error {
		return j.layer.Wipe(ctx, j.listing.ID, share, j.epoch())
	})
	if err != nil {
		return err
	}
	for seq := int64(0); ; {
		rows, err := j.snap.Holdings(ctx, seq, holdingsPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		seq = rows[len(rows)-1].Seq
		homes := make([][]sale.Holding, j.listing.Slots)
		for _, row := range rows {
			home := sale.Home(buyerHash(row.Buyer), j.listing.Slots)
			homes[home] = append(homes[home], row)
		}
		err = each(ctx, shares[:j.listing.Slots], func(ctx context.Context, i int, share sale.Share) error {
			if len(homes[i]) == 0 {
				return nil
			}
			return j.layer.Fill(ctx, j.listing.ID, share, j.epoch(), homes[i])
		})
		if err != nil {
			return err
		}
		if err := j.ledgers.ReshareProgress(ctx, j.listing.ID, j.epoch()); err != nil {
			return err
		}
	}
}

// each runs step for every share, a bounded number at a time, and stops at the first error.
func each(ctx context.Context, shares []sale.Share, step func(ctx context.Context, i int, share sale.Share) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sharesAtOnce)
	for i, share := range shares {
		group.Go(func() error {
			if err := step(ctx, i, share); err != nil {
				return fmt.Errorf("share %s: %w", share, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func orderIDs(takes []sale.PendingTake) []sale.OrderID {
	ids := make([]sale.OrderID, len(takes))
	for i, t := range takes {
		ids[i] = t.Order
	}
	return ids
}
