package service

import (
	"context"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// CreditorParts are what a Creditor is made of.
type CreditorParts struct {
	Store   Settlements
	Ledgers Ledgers
	Gate    Gate
	Flags   Flags
	Hints   Hints
	Faults  sale.Faults
	Log     *slog.Logger
}

// Creditor brings the units of closed orders back into the gate, each once, to the share that holds them. MySQL has
// them already: a restock that is late, or lost on the way, makes the gate admit too few, never too many.
type Creditor struct {
	CreditorParts
	cfg   Config
	queue chan sale.Restock
}

// NewCreditor returns a creditor; Run and Sweep do its work.
func NewCreditor(cfg Config, p CreditorParts) *Creditor {
	return &Creditor{CreditorParts: p, cfg: cfg, queue: make(chan sale.Restock, cfg.CreditQueue)}
}

// Offer hands over restocks that were just committed. It never blocks: what does not fit is left to the sweeper.
func (c *Creditor) Offer(restocks []sale.Restock) {
	for _, r := range restocks {
		select {
		case c.queue <- r:
		default:
			return
		}
	}
}

// Run credits what is offered until ctx ends.
func (c *Creditor) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-c.queue:
			c.report(ctx, c.newRound().credit(ctx, c.gather(first)))
		}
	}
}

// gather adds what waits already to the first restock, up to a batch.
func (c *Creditor) gather(first sale.Restock) []sale.Restock {
	restocks := []sale.Restock{first}
	for len(restocks) < c.cfg.CreditBatch {
		select {
		case next := <-c.queue:
			restocks = append(restocks, next)
		default:
			return restocks
		}
	}
	return restocks
}

// Sweep runs a round over all restocks that the gate has not got, time and again until ctx ends.
func (c *Creditor) Sweep(ctx context.Context) {
	every(ctx, ms(c.cfg.CreditEveryMs), func() { c.report(ctx, c.Round(ctx, ms(c.cfg.RestockAgeMs))) })
}

// Round tries every uncredited restock of at least this age once. What stands in the way of one SKU or share is no
// reason to leave the others; the first trouble with MySQL is returned at the end.
func (c *Creditor) Round(ctx context.Context, age time.Duration) (trouble error) {
	round := c.newRound()
	for after := int64(0); ; {
		restocks, err := c.page(ctx, age, after)
		if err != nil {
			return err
		}
		if len(restocks) > 0 {
			after = restocks[len(restocks)-1].Seq
			if err := round.credit(ctx, restocks); trouble == nil {
				trouble = err
			}
		}
		if len(restocks) < c.cfg.CreditBatch {
			return trouble
		}
	}
}

func (c *Creditor) page(ctx context.Context, age time.Duration, after int64) ([]sale.Restock, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(c.cfg.CreditTimeoutMs))
	defer cancel()
	return c.Store.Restocks(ctx, age, after, c.cfg.CreditBatch)
}

func (c *Creditor) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "restocks not credited, trying again", "error", err)
	}
}
