package service

import (
	"context"
	"time"

	"stockade/biz/sale"
)

// Bounds of the sweep over dead letters whose orders could not be compensated at once.
const (
	deadSweepEvery = time.Minute
	deadSweepPage  = 200
)

// Sweep runs a round over the OPEN letters, time and again until ctx ends: no order waits for an operator only because
// the database had a bad moment. Where operators decide, it does nothing.
func (b *Burier) Sweep(ctx context.Context) {
	if b.cfg.DeadLetters != DeadLettersAuto {
		return
	}
	every(ctx, deadSweepEvery, func() {
		if err := b.Round(ctx); err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "dead letters not swept, trying again", "error", err)
		}
	})
}

// Round tries once to compensate the order of every OPEN letter that names one. An order that cannot be closed does not
// stand in the way of the others; a database that does not answer ends the round. The first trouble is returned.
func (b *Burier) Round(ctx context.Context) (trouble error) {
	for after := int64(0); ; {
		letters, err := b.open(ctx, after)
		if err != nil {
			return firstOf(trouble, err)
		}
		for _, d := range letters {
			after = d.Seq
			if d.Order == nil {
				continue
			}
			err := b.again(ctx, d)
			trouble = firstOf(trouble, err)
			if err != nil && !b.answers(ctx, d.Seq) {
				return trouble
			}
		}
		if len(letters) < deadSweepPage {
			return trouble
		}
	}
}

// open reads a page of OPEN letters.
func (b *Burier) open(ctx context.Context, after int64) ([]sale.DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.SettleTimeoutMs))
	defer cancel()
	return b.store.DeadLetters(ctx, sale.DeadFilter{State: sale.DeadOpen, After: after, Limit: deadSweepPage})
}

// again compensates the order of one letter.
func (b *Burier) again(ctx context.Context, d sale.DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.ReplayTimeoutMs))
	defer cancel()
	done, err := b.settler.Compensate(ctx, *d.Order, deadActor)
	if err != nil {
		return err
	}
	return b.note(ctx, d.Seq, done)
}

// answers tells whether the database reads a letter.
func (b *Burier) answers(ctx context.Context, seq int64) bool {
	if ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.SettleTimeoutMs))
	defer cancel()
	_, err := b.store.DeadLetter(ctx, seq)
	return err == nil
}
