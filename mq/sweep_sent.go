package mq

import "context"

// sweepSent finds what the broker confirmed and then lost: SENT rows without an order become NEW again.
func (r *Relay) sweepSent() {
	age := ms(r.cfg.OutboxRecheckAfterMs)
	r.sweepEvery("sent", age, func(ctx context.Context) (bool, error) {
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
