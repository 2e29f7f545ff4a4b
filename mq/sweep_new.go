package mq

import (
	"context"
	"slices"

	"stockade/biz/sale"
)

// sweepNew publishes rows that stayed NEW: the relay had no room for them, or their publishing failed, or their node
// died.
func (r *Relay) sweepNew() {
	age := ms(r.cfg.OutboxSweepAfterMs)
	r.sweepEvery("new", age, func(ctx context.Context) (bool, error) {
		if !r.broker.Ready() {
			return false, nil // a claim would only put the rows off
		}
		claim, cancel := r.storeContext(ctx)
		orders, err := r.outbox.ClaimNew(claim, age, r.cfg.SweepBatch)
		cancel()
		if err != nil {
			return false, err
		}
		r.deps.Counters.swept.Add(uint64(len(orders)))
		r.publishAndWait(ctx, orders) // one claim at a time: what is in flight stays bounded
		return len(orders) > 0, nil   // a store may give out less than SweepBatch though there is more
	})
}

// publishAndWait returns when each envelope has been dealt with, or ctx ended.
func (r *Relay) publishAndWait(ctx context.Context, orders []sale.Order) {
	dealtWith := make(chan struct{}, len(orders))
	envelopes := 0
	for chunk := range slices.Chunk(orders, MaxEnvelopeOrders) {
		r.publish(chunk, func() { dealtWith <- struct{}{} })
		envelopes++
	}
	for range envelopes {
		select {
		case <-dealtWith:
		case <-ctx.Done():
			return
		}
	}
}
