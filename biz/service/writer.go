package service

import (
	"context"
	"sync/atomic"
	"time"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

// carryPause is how long the background waits after a promise that MySQL did not make, before it tries the next group.
const carryPause = 200 * time.Millisecond

// Writer is the outbox writer: it gathers admitted purchases and decides each group in one promise.
type Writer struct {
	cfg     Config
	parts   WriterParts
	batcher *batch.Batcher[sale.Take, sale.Decision]
	later   *carrier
	serving atomic.Int64 // groups
}

// WriterParts are what a Writer is made of.
type WriterParts struct {
	Promiser Promiser
	Gate     Gate
	Relay    Relay
	Breaker  Breaker     // before each promise; nil: none
	Faults   sale.Faults // nil: none
}

// NewWriter starts a writer; Close ends it.
func NewWriter(cfg Config, parts WriterParts) *Writer {
	parts.Faults = faultsOr(parts.Faults)
	if parts.Breaker == nil {
		parts.Breaker = alwaysClosed{}
	}
	w := &Writer{cfg: cfg, parts: parts}
	w.batcher = batch.New(batch.Config{Queue: cfg.WriterQueue, MaxGroup: cfg.WriterGroup, Workers: cfg.Writers}, w.serve)
	w.later = newCarrier(cfg.WriterQueue, cfg.WriterGroup, w.carry)
	return w
}

// Decide has one take decided. Its errors are those of batch.Batcher.Do; what the promise itself says is in the decision.
func (w *Writer) Decide(ctx context.Context, take sale.Take) (sale.Decision, error) {
	return w.batcher.Do(ctx, take)
}

// Later has an acknowledged take promised in the background. It never blocks. What does not fit into its queue, or is
// not promised at the first try, is left to the journal sweeper, which knows every acknowledged take.
func (w *Writer) Later(take sale.Take) { w.later.offer(take) }

// Unfinished is how much the writer has in hand beside the purchases whose callers wait: groups that are answered and not
// yet told to relay and gate, and acknowledged takes that are to be promised in the background.
func (w *Writer) Unfinished() int { return int(w.serving.Load() + w.later.waiting.Load()) }

// Close decides what waits, then stops.
func (w *Writer) Close() {
	w.batcher.Close()
	w.later.close()
}

// serve decides one group and answers its buyers. The relay and the journal can wait, and lose nothing if this process
// dies before they hear of it.
func (w *Writer) serve(group []*batch.Call[sale.Take, sale.Decision]) {
	// The group's own context: one buyer's patience must not end everybody's commit.
	ctx, cancel := context.WithTimeout(context.Background(), ms(w.cfg.PromiseTimeoutMs))
	defer cancel()
	w.serving.Add(1)
	defer w.serving.Add(-1)
	takes := make([]sale.Take, len(group))
	for i, call := range group {
		takes[i] = call.Query
	}
	decisions := w.promise(ctx, takes)
	for i, call := range group {
		call.Answer(decisions[i], nil)
	}
	w.tell(ctx, takes, decisions)
}

// carry promises acknowledged takes, and tells whether MySQL did its part.
func (w *Writer) carry(takes []sale.Take) bool {
	ctx, cancel := context.WithTimeout(context.Background(), ms(w.cfg.PromiseTimeoutMs))
	defer cancel()
	decisions := w.promise(ctx, takes)
	w.tell(ctx, takes, decisions)
	for _, d := range decisions {
		if d.Outcome == sale.NotTaken || d.Outcome == sale.Undecided {
			return false
		}
	}
	return true
}

// promise makes one promise. A fault behind the commit leaves everybody without an answer.
func (w *Writer) promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	decisions := w.guarded(ctx, takes)
	if !anyPromised(decisions) {
		return decisions
	}
	if err := w.parts.Faults.At(ctx, sale.PromiseCommitted); err != nil {
		for i := range decisions {
			decisions[i] = sale.Decision{Outcome: sale.Undecided, Err: err}
		}
	}
	return decisions
}

// tell hands what was promised to the relay, and settles it in the gate.
func (w *Writer) tell(ctx context.Context, takes []sale.Take, decisions []sale.Decision) {
	if anyPromised(decisions) && w.parts.Faults.At(ctx, sale.PromiseAnswered) != nil {
		return
	}
	kept := make([]sale.Settlement, 0, len(takes))
	for i, d := range decisions {
		// On path mysql there is no take in the gate to settle.
		if (d.Outcome == sale.Promised || d.Outcome == sale.Found) && takes[i].Mode != sale.ModeMySQL {
			kept = append(kept, settlement(takes[i], true))
		}
	}
	offer(w.parts.Relay, decisions)
	if len(kept) > 0 {
		w.parts.Gate.SettleLater(kept...)
	}
}

func anyPromised(decisions []sale.Decision) bool {
	for _, d := range decisions {
		if d.Outcome == sale.Promised {
			return true
		}
	}
	return false
}

func settlement(t sale.Take, kept bool) sale.Settlement {
	return sale.Settlement{
		SKU: t.SKU, Share: t.Share, Order: t.Order, Buyer: t.Buyer, Quantity: t.Quantity, Token: t.Token, Kept: kept,
	}
}

// faultsOr makes nothing go wrong where no faults are given.
func faultsOr(f sale.Faults) sale.Faults {
	if f == nil {
		return sale.NoFaults{}
	}
	return f
}
