package mq

import (
	"context"

	"stockade/biz/sale"
)

// sweepSent finds what the broker confirmed and then lost: SENT rows without an order become NEW again. It rests while
// consumers are paused, and about as long afterwards as a row waits for its first look: what piled up in the queue
// meanwhile is not lost.
func (r *Relay) sweepSent() {
	age := ms(r.cfg.OutboxRecheckAfterMs)
	var rest int
	r.sweepEvery("sent", age, func(ctx context.Context) (bool, error) {
		if r.deps.Paused(sale.ToggleConsumer) {
			rest = int(age/sweepPeriod(age)) + 1
			return false, nil
		}
		if rest > 0 {
			rest--
			return false, nil
		}
		check, cancel := r.storeContext(ctx)
		defer cancel()
		done, renewed, err := r.outbox.RecheckSent(check, age, r.cfg.SweepBatch)
		if err != nil {
			return false, err
		}
		r.deps.Counters.renewed.Add(uint64(renewed))
		return done+renewed > 0, nil
	})
}
