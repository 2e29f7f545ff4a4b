package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stockade/biz/sale"
)

// Bounds of the journal sweeper.
const (
	journalPage  = 500             // overdue takes settled in one step
	journalSteps = 100             // steps for one share in one sweep
	journalTime  = 5 * time.Second // for looking at the shares, and for one share beside its promise
	journalHot   = rememberFor     // SKUs with traffic here within this time are swept in every round
	journalOther = 50              // other SKUs swept in one round, in turn
)

// JournalSweeper settles takes whose node died, or whose answer got lost, before the promise was known, and carries
// acknowledged ones, whose buyers were told ACCEPTED, into MySQL.
type JournalSweeper struct {
	cfg   Config
	parts JournalParts
	after string // last SKU of the turn through all SKUs

	compensated atomic.Uint64
}

// JournalParts are what a JournalSweeper is made of.
type JournalParts struct {
	Ledgers  Ledgers
	Promiser Promiser
	Gate     Gate
	Watcher  *Watcher
	Relay    Relay       // nil: carried orders are left to the relay's sweeper
	Faults   sale.Faults // nil: none
	// Short hears of a SKU whose ledger has too few units for what its shares admitted. nil: nobody does.
	Short func(sku string)
	Log   *slog.Logger
}

// NewJournalSweeper returns a sweeper; Run does its work.
func NewJournalSweeper(cfg Config, parts JournalParts) *JournalSweeper {
	parts.Faults, parts.Relay = faultsOr(parts.Faults), relayOr(parts.Relay)
	if parts.Short == nil {
		parts.Short = func(string) {}
	}
	return &JournalSweeper{cfg: cfg, parts: parts}
}

// Compensated is how many acknowledged takes this sweeper could not carry and closed, since the process began.
func (j *JournalSweeper) Compensated() uint64 { return j.compensated.Load() }

// Run sweeps until ctx ends.
func (j *JournalSweeper) Run(ctx context.Context) {
	every(ctx, ms(j.cfg.JournalEveryMs), func() { j.round(ctx) })
}

// round sweeps the SKUs with traffic on this node, and a few of the others: a dead node's takes are found also when
// all its traffic was its own.
func (j *JournalSweeper) round(ctx context.Context) {
	swept := map[string]bool{}
	for _, sku := range j.parts.Watcher.Active(journalHot) {
		swept[sku] = true
		listing, err := j.parts.Ledgers.Listing(ctx, sku)
		if err == nil {
			_, err = j.Sweep(ctx, listing, ms(j.cfg.JournalAgeMs))
		}
		j.report(ctx, sku, err)
	}
	others, err := j.parts.Ledgers.Listings(ctx, j.after, journalOther)
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
		j.parts.Log.WarnContext(ctx, "journal not swept", "sku", sku, "error", err)
	}
}

// Sweep settles the takes of a SKU that are undecided for longer than age by the clock of Redis, and returns how many.
// Trouble with one share keeps no other from being swept; err joins all of it.
func (j *JournalSweeper) Sweep(ctx context.Context, l sale.Listing, age time.Duration) (settled int, err error) {
	if !l.State.HasStock() && l.State != sale.Closed {
		return 0, nil
	}
	shares, err := j.undecided(ctx, l)
	var mu sync.Mutex // guards settled and err
	var group errgroup.Group
	group.SetLimit(1)
	if err != nil {
		group.SetLimit(sharesAtOnce) // the shares of a sick master may all wait for it
	}
	for _, share := range shares {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, ms(j.cfg.PromiseTimeoutMs)+journalTime)
			defer cancel()
			n, trouble := j.share(ctx, l, share, age)
			mu.Lock()
			defer mu.Unlock()
			settled += n
			if trouble != nil {
				err = errors.Join(err, fmt.Errorf("share %s: %w", share, trouble))
			}
			return nil
		})
	}
	_ = group.Wait() // the shares' errors are joined above
	return settled, err
}

// undecided lists the shares that have undecided takes: all of them when not every share can tell, which is an error.
func (j *JournalSweeper) undecided(ctx context.Context, l sale.Listing) ([]sale.Share, error) {
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	figures, err := j.parts.Gate.Peek(ctx, l.ID, l.Slots)
	if err != nil {
		return sale.Shares(l.Slots), err
	}
	var shares []sale.Share
	for _, f := range figures {
		if !f.Gone && !f.Sealed && f.Pending > 0 {
			shares = append(shares, f.Share)
		}
	}
	return shares, nil
}

// share settles the overdue takes of one share. Its steps are bounded because a share that a reshare has sealed in the
// meantime keeps its takes until the reshare tells them: the same page would come again and again.
func (j *JournalSweeper) share(ctx context.Context, l sale.Listing, share sale.Share, age time.Duration) (settled int, err error) {
	for range journalSteps {
		takes, err := j.parts.Gate.Overdue(ctx, l.ID, share, age, journalPage)
		if err != nil || len(takes) == 0 {
			return settled, err
		}
		verdicts, trouble := j.judge(ctx, l, share, takes)
		if len(verdicts) > 0 {
			if err := j.parts.Gate.Settle(ctx, verdicts...); err != nil {
				return settled, err
			}
		}
		settled += len(verdicts)
		if trouble != nil || len(takes) < journalPage || len(verdicts) == 0 {
			return settled, trouble
		}
	}
	return settled, nil
}

// judge tells how takes of a share ended: those in the outbox are kept, those that were acknowledged are carried first,
// the others are dropped, unless they are acknowledged meanwhile. A take of which that cannot be told now is left out;
// err is the trouble with it.
func (j *JournalSweeper) judge(ctx context.Context, l sale.Listing, share sale.Share, takes []sale.PendingTake) ([]sale.Settlement, error) {
	rows, err := j.parts.Ledgers.Decided(ctx, l.ID, orderIDs(takes))
	if err == nil {
		err = j.parts.Faults.At(ctx, sale.JournalDecided)
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]sale.Settlement, 0, len(takes))
	var carry []sale.Take
	for _, t := range takes {
		take := takeOf(l, share, t)
		row, found := rows[t.Order]
		if t.Acknowledged && !found {
			carry = append(carry, take)
			continue
		}
		verdict := settlement(take, found && rowKeeps(row, share, t))
		verdict.Unmarked = !t.Acknowledged // marked since: the next sweep sees the mark
		verdicts = append(verdicts, verdict)
	}
	if len(carry) == 0 {
		return verdicts, nil
	}
	carried, trouble := j.carry(ctx, l.ID, carry)
	if err := j.parts.Faults.At(ctx, sale.JournalCarried); err != nil {
		return nil, err
	}
	return append(verdicts, carried...), trouble
}

// carry promises acknowledged takes under the live epoch. What cannot be promised is closed in MySQL as
// COMPENSATED, so that its buyer learns of it, and then dropped from its share.
func (j *JournalSweeper) carry(ctx context.Context, sku string, takes []sale.Take) (settled []sale.Settlement, trouble error) {
	promising, cancel := context.WithTimeout(ctx, ms(j.cfg.PromiseTimeoutMs))
	defer cancel()
	var refused []sale.Take
	short := false
	decisions := j.parts.Promiser.Promise(promising, takes)
	offer(j.parts.Relay, decisions)
	for i, d := range decisions {
		switch d.Outcome {
		case sale.Promised, sale.Found, sale.FoundElse:
			settled = append(settled, settlement(takes[i], orderKeeps(d)))
		case sale.Short, sale.OverLimit, sale.Rejected:
			short = short || d.Outcome == sale.Short
			refused = append(refused, takes[i])
		case sale.NotTaken, sale.Undecided:
			trouble = d.Err
		} // fenced ones are carried by the reshare, or in the next sweep
	}
	if short {
		j.parts.Short(sku)
	}
	if len(refused) == 0 {
		return settled, trouble
	}
	over, closed, err := closeUnpromised(ctx, j.parts.Ledgers, j.parts.Log, sku, refused)
	j.compensated.Add(uint64(closed))
	for _, take := range refused {
		if over[take.Order] { // the next sweep finds the row of any other
			settled = append(settled, settlement(take, false))
		}
	}
	return settled, errors.Join(trouble, err)
}

// takeOf is a take of a share as it would be promised now.
func takeOf(l sale.Listing, share sale.Share, t sale.PendingTake) sale.Take {
	return sale.Take{
		Order: t.Order, SKU: l.ID, Buyer: t.Buyer, Quantity: t.Quantity, Share: share, Token: t.Token,
		Epoch: l.Ledger.LiveEpoch, Mode: l.Ledger.Mode, Limit: l.Limit, Window: l.PaymentWindow,
	}
}
