package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// deadActor is who deals with dead letters when no operator does.
const deadActor = "dead letter"

// Bounds of the tries to compensate the order of one dead letter before it is left to the sweep and to operators.
const (
	compensateTries = 5
	compensateEvery = 500 * time.Millisecond
)

// Burier keeps messages that could not be turned into orders, and deals with them: by itself where the configuration
// says so, else on an operator's word.
type Burier struct {
	cfg      Config
	store    DeadLetters
	settler  *Settler
	replayer Replayer
	faults   sale.Faults
	log      *slog.Logger
}

// NewBurier returns the use case.
func NewBurier(cfg Config, store DeadLetters, settler *Settler, replayer Replayer, faults sale.Faults, log *slog.Logger) *Burier {
	return &Burier{cfg: cfg, store: store, settler: settler, replayer: replayer, faults: faults, log: log}
}

// Bury keeps a dead letter and, when that is automatic and its order is known, compensates the order. It returns nil when
// the message can be acked; after an error the same call again does what is left.
func (b *Burier) Bury(ctx context.Context, d sale.DeadLetter) error {
	seq, err := b.store.RecordDead(ctx, d)
	if err != nil {
		return err
	}
	b.log.ErrorContext(ctx, "message dead-lettered", "seq", seq, "order", d.Order, "sku", d.SKU, "error", d.Error, "source", d.Source)
	if err := b.faults.At(ctx, sale.DeadLetterRecorded); err != nil {
		return err
	}
	if b.cfg.DeadLetters != DeadLettersAuto || d.Order == nil {
		return nil
	}
	done, err := b.compensate(ctx, *d.Order)
	if err != nil {
		if _, unread := b.store.DeadLetter(ctx, seq); unread != nil || ctx.Err() != nil {
			return err
		}
		// The database answers: it is this order that cannot be closed, and others wait behind it.
		b.log.ErrorContext(ctx, "dead letter stays open", "seq", seq, "order", d.Order, "error", err)
		return nil
	}
	return b.note(ctx, seq, done)
}

// note writes down what became of a letter whose order was compensated, or needed not be.
func (b *Burier) note(ctx context.Context, seq int64, done sale.Settled) error {
	if done.Outcome == sale.NoOrder { // nobody was promised anything: an operator has to look
		return nil
	}
	if err := b.faults.At(ctx, sale.DeadLetterCompensated); err != nil {
		return err
	}
	err := b.store.HandleDead(ctx, seq, handledAs(done), deadActor)
	if errors.Is(err, sale.ErrConflict) { // somebody else has dealt with it meanwhile
		return nil
	}
	return err
}

// compensate tries a few times: a lock that is held for a moment is no reason to bother an operator.
func (b *Burier) compensate(ctx context.Context, id sale.OrderID) (done sale.Settled, err error) {
	for try := range compensateTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return done, ctx.Err()
			case <-time.After(compensateEvery):
			}
		}
		if done, err = b.settler.Compensate(ctx, id, deadActor); err == nil {
			return done, nil
		}
	}
	return done, err
}

// handledAs is what a dead letter becomes when its order was to be compensated.
func handledAs(done sale.Settled) sale.DeadState {
	if done.Order.State == sale.OrderClosed {
		return sale.DeadCompensated
	}
	return sale.DeadDropped // the order is written, or there is none: the letter alone is thrown away
}

// List returns a page of dead letters without bodies.
func (b *Burier) List(ctx context.Context, f sale.DeadFilter) ([]sale.DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.ReadTimeoutMs))
	defer cancel()
	letters, err := b.store.DeadLetters(ctx, f)
	return letters, unavailable(err)
}

// Show returns one dead letter with its body; sale.ErrNotFound.
func (b *Burier) Show(ctx context.Context, seq int64) (sale.DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.ReadTimeoutMs))
	defer cancel()
	d, err := b.store.DeadLetter(ctx, seq)
	return d, unavailable(err)
}

// Replay sends an OPEN dead letter to the order queue once more. sale.ErrNotFound; sale.ErrConflict when it is not OPEN.
// After any other error the broker may have it: replaying again is harmless, because an order is written once.
func (b *Burier) Replay(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error) {
	return b.handle(ctx, seq, actor, func(ctx context.Context, d sale.DeadLetter) (sale.DeadState, error) {
		return sale.DeadReplayed, b.replayer.Replay(ctx, d)
	})
}

// Drop throws an OPEN dead letter away: its order, if it has one that is not written, is compensated. Errors as of Replay;
// sale.ErrQueueFull and ErrOutcomeUnknown too.
func (b *Burier) Drop(ctx context.Context, seq int64, actor string) (sale.DeadLetter, error) {
	return b.handle(ctx, seq, actor, func(ctx context.Context, d sale.DeadLetter) (sale.DeadState, error) {
		if d.Order == nil {
			return sale.DeadDropped, nil
		}
		done, err := b.settler.Compensate(ctx, *d.Order, actor)
		return handledAs(done), err
	})
}

// handle deals with one OPEN dead letter and returns it as it is then.
func (b *Burier) handle(
	ctx context.Context, seq int64, actor string, deal func(context.Context, sale.DeadLetter) (sale.DeadState, error),
) (sale.DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(b.cfg.ReplayTimeoutMs))
	defer cancel()
	d, err := b.store.DeadLetter(ctx, seq)
	if err == nil && d.State != sale.DeadOpen {
		err = sale.ErrConflict
	}
	if err != nil {
		return d, unavailable(err)
	}
	to, err := deal(ctx, d)
	if err == nil {
		err = b.store.HandleDead(ctx, seq, to, actor)
	}
	if err != nil {
		return d, unavailable(err)
	}
	d, err = b.store.DeadLetter(ctx, seq)
	return d, unavailable(err)
}
