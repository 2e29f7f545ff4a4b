package mq

import (
	"context"

	"stockade/biz/sale"
)

// maxBatchOrders is how many orders one transaction of the store writes: 500 rows a commit wrote 49 000 to 91 000
// orders per second, 100 rows 35 000 to 59 000.
const maxBatchOrders = 500

// Orders is what the consumers need of the store.
type Orders interface {
	// InsertOrders writes orders that may have been written before; repeating an order changes nothing.
	//
	// err is trouble with the infrastructure: nothing is known to be written, and the same call may succeed later.
	// Otherwise every order is written but those that refused, of the same length as orders or nil, has an error for:
	// they cannot be written.
	InsertOrders(ctx context.Context, orders []sale.Order) (refused []error, err error)
}

// Consumers writes the orders that arrive in envelopes, over Config.Consumers subscriptions. A delivery is acked when
// each of its orders is written, or waits in a retry tier, or is in the dead queue because it could not be written after
// all tiers. sale.ToggleConsumer pauses them.
type Consumers struct {
	*workers
	orders   Orders
	timeouts *timeouts
}

// NewConsumers returns consumers that do nothing until Start.
func NewConsumers(cfg Config, deps Deps, broker Broker, orders Orders) *Consumers {
	c := &Consumers{workers: newWorkers(cfg, deps, broker), orders: orders}
	c.timeouts = newTimeouts(c.workers)
	c.queue, c.toggle, c.width, c.work = c.names.Create, sale.ToggleConsumer, cfg.Consumers, c.consumeBatch
	return c
}

func (c *Consumers) consumeBatch(sub Subscription, first Delivery) bool {
	b := c.gather(sub, first)
	if !c.handle(b) {
		return false
	}
	if err := sub.Ack(b.deliveries...); err != nil {
		c.deps.Log.Warn("consumer: written orders will be delivered again", "error", err)
		return false
	}
	c.deps.Counters.consumed.Add(uint64(len(b.orders)))
	return true
}

// batch is a few deliveries that are handled and acked together.
type batch struct {
	deliveries []Delivery
	orders     []sale.Order
	attempts   []int // of each order: the tiers that it went through
	poison     []poison
}

// gather adds the deliveries that wait already, as long as one more is sure to fit.
func (c *Consumers) gather(sub Subscription, first Delivery) *batch {
	b := &batch{}
	b.add(first)
	for len(b.deliveries) < c.cfg.Prefetch && len(b.orders)+MaxEnvelopeOrders <= maxBatchOrders {
		select {
		case d, open := <-sub.Deliveries():
			if !open {
				return b
			}
			b.add(d)
		default:
			return b
		}
	}
	return b
}

func (b *batch) add(d Delivery) {
	b.deliveries = append(b.deliveries, d)
	attempt := attemptOf(d)
	orders, unreadable := openEnvelope(d.Message)
	for _, p := range unreadable {
		p.attempt = attempt
		b.poison = append(b.poison, p)
	}
	for _, o := range orders {
		if err := CheckOrder(o); err != nil {
			b.poison = append(b.poison, poisonOrder(o, attempt, err))
			continue
		}
		b.orders = append(b.orders, o)
		b.attempts = append(b.attempts, attempt)
	}
}

// handle returns true when the batch may be acked. Good orders are written before anything is done about bad ones.
func (c *Consumers) handle(b *batch) bool {
	var refused []error
	written := c.insist("write orders", func(ctx context.Context) (err error) {
		if err = c.deps.Faults.At(ctx, sale.ConsumerReceived); err == nil && len(b.orders) > 0 {
			refused, err = c.orders.InsertOrders(ctx, b.orders)
		}
		return err
	})
	if !written {
		return false
	}
	if err := c.deps.Faults.At(c.working, sale.ConsumerWritten); err != nil {
		return false
	}
	var good []sale.Order
	for i, o := range b.orders {
		if refused != nil && refused[i] != nil {
			b.poison = append(b.poison, poisonOrder(o, b.attempts[i], refused[i]))
			continue
		}
		good = append(good, o)
	}
	c.timeouts.publish(good)
	return c.retry(b.poison)
}
