package service

import (
	"context"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// Bounds of the journal sweeper.
const (
	journalPage  = 500         // overdue takes settled in one step
	journalSteps = 100         // steps for one share in one sweep
	journalHot   = rememberFor // SKUs with traffic here within this time are swept in every round
	journalOther = 50          // other SKUs swept in one round, in turn
)

// JournalSweeper settles takes whose node died, or whose answer got lost, before the promise was known.
type JournalSweeper struct {
	cfg     Config
	ledgers Ledgers
	gate    Gate
	watcher *Watcher
	log     *slog.Logger
	after   string // last SKU of the turn through all SKUs
}

// NewJournalSweeper returns a sweeper; Run does its work.
func NewJournalSweeper(cfg Config, ledgers Ledgers, gate Gate, watcher *Watcher, log *slog.Logger) *JournalSweeper {
	return &JournalSweeper{cfg: cfg, ledgers: ledgers, gate: gate, watcher: watcher, log: log}
}

// Run sweeps until ctx ends.
func (j *JournalSweeper) Run(ctx context.Context) {
	tick := time.NewTicker(ms(j.cfg.JournalEveryMs))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			j.round(ctx)
		}
	}
}

// round sweeps the SKUs with traffic on this node, and a few of the others: a dead node's takes are found also when
// all its traffic was its own.
func (j *JournalSweeper) round(ctx context.Context) {
	swept := map[string]bool{}
	for _, sku := range j.watcher.Active(journalHot) {
		swept[sku] = true
		listing, err := j.ledgers.Listing(ctx, sku)
		if err == nil {
			_, err = j.Sweep(ctx, listing, ms(j.cfg.JournalAgeMs))
		}
		j.report(ctx, sku, err)
	}
	others, err := j.ledgers.Listings(ctx, j.after, journalOther)
	j.report(ctx, "", err)
	j.after = ""
	if len(others) == journalOther {
		j.after = others[len(others)-1].ID
	}
	for _, listing := range others {
		if !swept[listing.ID] {
			_, err := j.Sweep(ctx, listing, ms(j.cfg.JournalAgeMs))
			j.report(ctx, listing.ID, err)
		}
	}
}

func (j *JournalSweeper) report(ctx context.Context, sku string, err error) {
	if err != nil && ctx.Err() == nil {
		j.log.WarnContext(ctx, "journal not swept", "sku", sku, "error", err)
	}
}

// Sweep settles the takes of a SKU that are undecided for longer than age by the clock of Redis, and returns how many.
func (j *JournalSweeper) Sweep(ctx context.Context, l sale.Listing, age time.Duration) (settled int, err error) {
	if !l.State.HasStock() && l.State != sale.Closed {
		return 0, nil
	}
	figures, err := j.gate.Peek(ctx, l.ID, l.Slots)
	if err != nil {
		return 0, err
	}
	for _, f := range figures {
		if f.Gone || f.Sealed || f.Pending == 0 {
			continue
		}
		n, err := j.share(ctx, l.ID, f.Share, age)
		settled += n
		if err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// share settles the overdue takes of one share. Its steps are bounded because a share that a reshare has sealed in the
// meantime keeps its takes until the reshare tells them: the same page would come again and again.
func (j *JournalSweeper) share(ctx context.Context, sku string, share sale.Share, age time.Duration) (settled int, err error) {
	for range journalSteps {
		takes, err := j.gate.Overdue(ctx, sku, share, age, journalPage)
		if err != nil || len(takes) == 0 {
			return settled, err
		}
		rows, err := j.ledgers.Decided(ctx, sku, orderIDs(takes))
		if err != nil {
			return settled, err
		}
		verdicts := make([]sale.Settlement, len(takes))
		for i, t := range takes {
			row, found := rows[t.Order]
			verdicts[i] = sale.Settlement{
				SKU: sku, Share: share, Order: t.Order, Buyer: t.Buyer, Quantity: t.Quantity, Token: t.Token,
				Kept: found && row.Share == share && row.Token == t.Token,
			}
		}
		if err := j.gate.Settle(ctx, verdicts...); err != nil {
			return settled, err
		}
		settled += len(takes)
		if len(takes) < journalPage {
			break
		}
	}
	return settled, nil
}
