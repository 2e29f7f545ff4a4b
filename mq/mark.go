package mq

import (
	"context"

	"stockade/biz/sale"
)

// mark moves the rows of confirmed envelopes to SENT, those of many envelopes in one statement. A row that cannot be
// marked stays NEW: a sweeper publishes it once more, which is harmless.
func (r *Relay) mark() {
	var group []packed
	for {
		select {
		case first := <-r.settled:
			group = r.gather(append(group[:0], first))
			r.markSent(confirmed(group))
			for _, p := range group {
				r.release(p.done, p.outcome == Confirmed)
			}
			clear(group)
		case <-r.drained:
			return
		}
	}
}

func confirmed(group []packed) (ids []sale.OrderID) {
	for _, p := range group {
		if p.outcome == Confirmed {
			ids = append(ids, p.ids...)
		}
	}
	return ids
}

// gather adds the envelopes that are settled already, as long as one more is sure to fit into a statement.
func (r *Relay) gather(group []packed) []packed {
	rows := len(group[0].ids)
	for rows+MaxEnvelopeOrders <= r.cfg.MarkBatch {
		select {
		case p := <-r.settled:
			group = append(group, p)
			rows += len(p.ids)
		default:
			return group
		}
	}
	return group
}

func (r *Relay) markSent(ids []sale.OrderID) {
	for len(ids) > 0 {
		n := min(len(ids), r.cfg.MarkBatch)
		ctx, cancel := context.WithTimeout(r.ctx, ms(r.cfg.StoreTimeoutMs))
		err := r.deps.Faults.At(ctx, sale.RelayConfirmed)
		if err == nil {
			err = r.outbox.MarkSent(ctx, ids[:n])
		}
		cancel()
		if err != nil {
			r.deps.Log.Warn("relay: rows stay NEW and will be published again", "rows", n, "error", err)
		} else {
			r.deps.Counters.marked.Add(uint64(n))
		}
		ids = ids[n:]
	}
}
