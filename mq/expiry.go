package mq

import (
	"context"
	"slices"

	"stockade/biz/sale"
)

// maxExpiryOrders is how many orders the expiry consumer hands on at once.
const maxExpiryOrders = 500

// Expirer closes orders whose payment window has ended.
type Expirer interface {
	// Expire closes those of these orders, at most 500 and none twice, that are still unpaid and due by the clock of
	// the database. Repeating it changes nothing. An error is trouble with the infrastructure: the same call may
	// succeed later.
	Expire(ctx context.Context, ids []sale.OrderID) error
}

// ExpiryConsumer hands on the orders of timeout messages, those of several messages together. A message is acked when
// its orders were handed on without error. sale.ToggleExpiry pauses it.
//
// The lifetime of a message begins after its orders were accepted, so they are due when it arrives. One that is not, by a
// clock that was set back meanwhile, is not sent round again: the expiry sweeper closes it when it is.
type ExpiryConsumer struct {
	*workers
	expirer Expirer
}

// NewExpiryConsumer returns a consumer that does nothing until Start.
func NewExpiryConsumer(cfg Config, deps Deps, broker Broker, expirer Expirer) *ExpiryConsumer {
	e := &ExpiryConsumer{workers: newWorkers(cfg, deps, broker), expirer: expirer}
	e.queue, e.toggle, e.work = e.names.Expire, sale.ToggleExpiry, e.expire
	return e
}

func (e *ExpiryConsumer) expire(sub Subscription, first Delivery) bool {
	deliveries := e.gather(sub, first)
	ids := e.orders(deliveries)
	if len(ids) > 0 {
		done := e.insist("expire orders", func(ctx context.Context) error {
			if err := e.deps.Faults.At(ctx, sale.ExpiryDelivered); err != nil {
				return err
			}
			return e.expirer.Expire(ctx, ids)
		})
		if !done {
			return false
		}
	}
	if err := sub.Ack(deliveries...); err != nil {
		e.deps.Log.Warn("consumer: timeout messages will be delivered again", "error", err)
		return false
	}
	e.deps.Counters.expired.Add(uint64(len(ids)))
	return true
}

// gather adds the deliveries that wait already, as long as one more is sure to fit.
func (e *ExpiryConsumer) gather(sub Subscription, first Delivery) []Delivery {
	deliveries := []Delivery{first}
	for len(deliveries) < min(e.cfg.Prefetch, maxExpiryOrders/MaxEnvelopeOrders) {
		select {
		case d, open := <-sub.Deliveries():
			if !open {
				return deliveries
			}
			deliveries = append(deliveries, d)
		default:
			return deliveries
		}
	}
	return deliveries
}

// orders reads the ids, without repetition, in their order: every node then locks rows in the same one. A message that
// cannot be read is dropped, which delays its orders until the sweeper finds them.
func (e *ExpiryConsumer) orders(deliveries []Delivery) []sale.OrderID {
	var all []sale.OrderID
	for _, d := range deliveries {
		ids, err := decodeTimeout(d)
		if err != nil {
			e.deps.Counters.unreadTimeouts.Add(1)
			e.deps.Log.Error("consumer: dropped a timeout message that cannot be read", "message", d.ID, "error", err)
			continue
		}
		all = append(all, ids...)
	}
	slices.SortFunc(all, func(a, b sale.OrderID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(all)
}
