package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stockade/biz/sale"
)

// progressEvery is the pause between a reshare's signs of life; each is a commit.
const progressEvery = 250 * time.Millisecond

// reshare is one reshare under way.
type reshare struct {
	*Resharer
	snap    sale.Snapshot
	listing sale.Listing
	full    bool
	tail    bool
	spread  bool
	lost    bool
	added   int64              // to the total by this reshare
	sealed  []sale.SealedShare // first pages, in the order of shares
	reading sync.Mutex         // a snapshot is for one goroutine at a time

	mu       sync.Mutex // guards the rest
	reported time.Time  // last sign of life
	carried  []sale.Holding
	units    int64 // of carried
	dropped  int64 // units of undecided takes that went back
	held     int64 // units that the sealed shares had left
	moved    bool
}

func (j *reshare) epoch() int64 { return j.listing.Ledger.Epoch }

// left is what may still be sold.
func (j *reshare) left() int64 { return j.listing.Ledger.Available() - j.units }

func (j *reshare) record(reason string, took time.Duration) ReshareRecord {
	r := ReshareRecord{
		SKU: j.listing.ID, Reason: reason, Epoch: j.epoch(), Full: j.full, Left: j.left(), Carried: j.units,
		Took: took, At: time.Now(), Lost: j.lost, Moved: j.moved,
	}
	if j.listing.Ledger.Mode != sale.ModeMySQL {
		r.Drift = j.left() - j.added - j.held - j.dropped
	}
	return r
}

// laidSlots is how many slots may have keys: a slot count that went down leaves some behind.
func (j *reshare) laidSlots() int { return max(j.listing.Slots, j.listing.Ledger.LaidSlots) }

func (j *reshare) run(ctx context.Context) error {
	all, shares := sale.Shares(j.laidSlots()), sale.Shares(j.listing.Slots)
	j.full = j.full || len(all) > len(shares)
	var err error
	if j.sealed, err = j.layer.SealAll(ctx, j.listing.ID, all, j.epoch(), sealFirst); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	for _, s := range j.sealed {
		// A share that is gone, or older than the live epoch (an old snapshot came back), proves nothing about its buyers.
		if s.Gone || s.Epoch < j.listing.Ledger.LiveEpoch {
			j.full, j.lost = true, j.lost || len(all) == len(shares)
		}
	}
	if err := j.measure(ctx); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	if err := j.faults.At(ctx, sale.ReshareSealed); err != nil {
		return err
	}
	if err := j.tellAll(ctx, all); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if j.full {
		if err := j.layAll(ctx, all, shares); err != nil {
			return fmt.Errorf("full: %w", err)
		}
	}
	if err := j.faults.At(ctx, sale.ReshareLaid); err != nil {
		return err
	}
	layout := sale.Layout(j.left(), j.listing.Slots, j.listing.ReservePct)
	if j.tail {
		layout = sale.TailLayout(j.left(), j.listing.Slots)
	} else if j.spread {
		layout = sale.SpreadLayout(j.left(), j.listing.Slots, j.epoch())
	}
	if err := j.layer.OpenAll(ctx, j.listing.ID, shares, j.epoch(), layout); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	surplus := all[j.listing.Slots : len(all)-1]
	err = each(ctx, surplus, func(ctx context.Context, _ int, share sale.Share) error {
		return j.layer.Drop(ctx, j.listing.ID, share, j.epoch())
	})
	if err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	return j.faults.At(ctx, sale.ReshareOpened)
}

// measure reads what the sealed shares had left, which nobody changes any more.
func (j *reshare) measure(ctx context.Context) error {
	figures, err := j.gate.Peek(ctx, j.listing.ID, j.laidSlots())
	for _, f := range figures {
		j.held += f.Left - f.Short
		j.moved = j.moved || f.Left > 0 && (j.spread || j.tail && f.Share != sale.Reserve)
	}
	return err
}

// progress is the sign of life, at most one each progressEvery.
func (j *reshare) progress(ctx context.Context) error {
	j.mu.Lock()
	now := time.Now()
	due := now.Sub(j.reported) >= progressEvery
	if due {
		j.reported = now
	}
	j.mu.Unlock()
	if !due {
		return nil
	}
	return j.ledgers.ReshareProgress(ctx, j.listing.ID, j.epoch())
}

// layAll wipes the shares and lays every order out at its buyer's home: those of the snapshot, page by page, the next one
// being read while one is laid, and those that were carried since.
func (j *reshare) layAll(ctx context.Context, all, shares []sale.Share) error {
	err := each(ctx, all, func(ctx context.Context, _ int, share sale.Share) error {
		return j.layer.Wipe(ctx, j.listing.ID, share, j.epoch())
	})
	if err != nil {
		return err
	}
	if err := j.lay(ctx, shares, j.carried); err != nil {
		return err
	}
	pages := make(chan []sale.Holding, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(pages)
		for seq := int64(0); ; {
			rows, err := j.snap.Holdings(ctx, seq, holdingsPage)
			if err != nil || len(rows) == 0 {
				return err
			}
			seq = rows[len(rows)-1].Seq
			select {
			case pages <- rows:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error {
		for rows := range pages {
			if err := j.lay(ctx, shares, rows); err != nil {
				return err
			}
			if err := j.progress(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// lay fills rows into the homes of their buyers.
func (j *reshare) lay(ctx context.Context, shares []sale.Share, rows []sale.Holding) error {
	homes := make([][]sale.Holding, j.listing.Slots)
	for _, row := range rows {
		home := sale.Home(buyerHash(row.Buyer), j.listing.Slots)
		homes[home] = append(homes[home], row)
	}
	return each(ctx, shares[:j.listing.Slots], func(ctx context.Context, i int, share sale.Share) error {
		if len(homes[i]) == 0 {
			return nil
		}
		return j.layer.Fill(ctx, j.listing.ID, share, j.epoch(), homes[i])
	})
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
