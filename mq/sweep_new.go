package mq

import (
	"context"
	"slices"
	"time"

	"stockade/biz/sale"
)

// sweepNew publishes rows that stayed NEW: the relay had no room for them, or their publishing failed, or their node
// died.
func (r *Relay) sweepNew() {
	age := ms(r.cfg.OutboxSweepAfterMs)
	r.sweepEvery("new", age, func(ctx context.Context) (bool, error) { return r.sweepOlder(ctx, age) })
}

// sweepOlder claims NEW rows of some age once and publishes them. It says that there is more as long as the broker takes
// what it is given: a store may give out less than SweepBatch though there is more.
func (r *Relay) sweepOlder(ctx context.Context, age time.Duration) (more bool, err error) {
	if r.held() || !r.broker.Ready() {
		return false, nil // a claim would only put the rows off
	}
	claim, cancel := r.storeContext(ctx)
	orders, err := r.outbox.ClaimNew(claim, age, r.cfg.SweepBatch)
	cancel()
	if err != nil || len(orders) == 0 {
		return false, err
	}
	r.deps.Counters.swept.Add(uint64(len(orders)))
	if err := r.deps.Faults.At(ctx, sale.SweepClaimed); err != nil {
		r.missed.note()
		return false, err
	}
	return r.publishAndWait(ctx, orders) > 0, nil // one claim at a time: what is in flight stays bounded
}

// publishAndWait returns when each envelope has been dealt with, or ctx ended, and counts those that the broker has.
func (r *Relay) publishAndWait(ctx context.Context, orders []sale.Order) (confirmed int) {
	dealtWith := make(chan bool, len(orders))
	envelopes := 0
	for chunk := range slices.Chunk(orders, MaxEnvelopeOrders) {
		r.publish(chunk, func(confirmed bool) { dealtWith <- confirmed })
		envelopes++
	}
	for range envelopes {
		select {
		case ok := <-dealtWith:
			if ok {
				confirmed++
			}
		case <-ctx.Done():
			return confirmed
		}
	}
	return confirmed
}
