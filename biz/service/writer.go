package service

import (
	"context"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

// Writer is the outbox writer: it gathers admitted purchases and decides each group in one promise.
type Writer struct {
	cfg      Config
	promiser Promiser
	gate     Gate
	relay    Relay
	batcher  *batch.Batcher[sale.Take, sale.Decision]
}

// NewWriter starts a writer; Close ends it.
func NewWriter(cfg Config, promiser Promiser, gate Gate, relay Relay) *Writer {
	w := &Writer{cfg: cfg, promiser: promiser, gate: gate, relay: relay}
	w.batcher = batch.New(batch.Config{Queue: cfg.WriterQueue, MaxGroup: cfg.WriterGroup, Workers: cfg.Writers}, w.promise)
	return w
}

// Decide has one take decided. Its errors are those of batch.Batcher.Do; what the promise itself says is in the decision.
func (w *Writer) Decide(ctx context.Context, take sale.Take) (sale.Decision, error) {
	return w.batcher.Do(ctx, take)
}

// Close decides what waits, then stops.
func (w *Writer) Close() { w.batcher.Close() }

// promise decides one group. Buyers are answered first; the relay and the journal can wait, and lose nothing if this
// process dies before they hear of it.
func (w *Writer) promise(group []*batch.Call[sale.Take, sale.Decision]) {
	// The group's own context: one buyer's patience must not end everybody's commit.
	ctx, cancel := context.WithTimeout(context.Background(), ms(w.cfg.PromiseTimeoutMs))
	defer cancel()
	takes := make([]sale.Take, len(group))
	for i, call := range group {
		takes[i] = call.Query
	}
	decisions := w.promiser.Promise(ctx, takes)
	committed := make([]sale.Order, 0, len(group))
	kept := make([]sale.Settlement, 0, len(group))
	for i, call := range group {
		switch decisions[i].Outcome {
		case sale.Promised:
			committed = append(committed, decisions[i].Order)
			kept = append(kept, settlement(takes[i], true))
		case sale.Found:
			kept = append(kept, settlement(takes[i], true))
		}
		call.Answer(decisions[i], nil)
	}
	if len(committed) > 0 {
		w.relay.Offer(committed)
	}
	if len(kept) > 0 {
		w.gate.SettleLater(kept...)
	}
}

func settlement(t sale.Take, kept bool) sale.Settlement {
	return sale.Settlement{
		SKU: t.SKU, Share: t.Share, Order: t.Order, Buyer: t.Buyer, Quantity: t.Quantity, Token: t.Token, Kept: kept,
	}
}
