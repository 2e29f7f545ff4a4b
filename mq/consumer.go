package mq

import (
	"context"
	"sync"
	"time"

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
	// they can never be written.
	InsertOrders(ctx context.Context, orders []sale.Order) (refused []error, err error)
}

// Consumers writes the orders that arrive in envelopes. A delivery is acked when each of its orders is written, or
// parked in the dead queue because it can never be.
type Consumers struct {
	cfg    Config
	deps   Deps
	names  Names
	broker Broker
	orders Orders

	start     sync.Once
	stop      sync.Once
	receiving context.Context // ends first: no new batch
	working   context.Context // ends when finishing the batch has taken too long
	stopNow   context.CancelFunc
	stopWork  context.CancelFunc
	done      sync.WaitGroup
}

// NewConsumers returns consumers that do nothing until Start.
func NewConsumers(cfg Config, deps Deps, broker Broker, orders Orders) *Consumers {
	c := &Consumers{cfg: cfg, deps: deps.withDefaults(), names: NamesFor(cfg.Prefix), broker: broker, orders: orders}
	c.working, c.stopWork = context.WithCancel(context.Background())
	c.receiving, c.stopNow = context.WithCancel(c.working)
	return c
}

// Start begins to consume with Config.Consumers subscriptions.
func (c *Consumers) Start() {
	c.start.Do(func() {
		for range c.cfg.Consumers {
			c.done.Go(c.run)
		}
	})
}

// Close lets each consumer finish its batch, for at most Config.StopTimeoutMs, and returns when all have ended. What is
// not acked is delivered again, to somebody.
func (c *Consumers) Close() {
	c.stop.Do(func() {
		c.start.Do(func() {}) // a Start after Close does nothing
		c.stopNow()
		late := time.AfterFunc(ms(c.cfg.StopTimeoutMs), c.stopWork)
		defer late.Stop()
		c.done.Wait()
		c.stopWork()
	})
}

// run subscribes, and again whenever the subscription is lost.
func (c *Consumers) run() {
	wait := c.newBackoff()
	for c.receiving.Err() == nil {
		sub, err := c.broker.Subscribe(c.receiving, c.names.Create, c.cfg.Prefetch)
		if err == nil {
			wait.reset()
			c.consume(sub)
			sub.Close()
		} else if c.receiving.Err() == nil {
			c.deps.Log.Warn("consumer: cannot subscribe", "queue", c.names.Create, "error", err)
		}
		c.pause(c.receiving, wait)
	}
}

// consume handles batches until the subscription is lost or the consumers stop.
func (c *Consumers) consume(sub Subscription) {
	for {
		select {
		case <-c.receiving.Done():
			return
		case first, open := <-sub.Deliveries():
			if !open || c.receiving.Err() != nil {
				return
			}
			b := c.gather(sub, first)
			if !c.handle(b) {
				return
			}
			if err := sub.Ack(b.deliveries...); err != nil {
				c.deps.Log.Warn("consumer: written orders will be delivered again", "error", err)
				return
			}
			c.deps.Counters.consumed.Add(uint64(len(b.orders)))
		}
	}
}

// batch is a few deliveries that are handled and acked together.
type batch struct {
	deliveries []Delivery
	orders     []sale.Order
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
	orders, err := DecodeEnvelope(d.ContentType, d.Body)
	if err != nil {
		b.poison = append(b.poison, poison{whole: &d, err: err})
		return
	}
	for _, o := range orders {
		if err := CheckOrder(o); err != nil {
			b.poison = append(b.poison, poison{order: o, err: err})
			continue
		}
		b.orders = append(b.orders, o)
	}
}

// handle returns true when the batch may be acked. It pauses and tries again for as long as the trouble is not the
// orders' own; meanwhile the deliveries stay unacked. False means that there is no time left.
func (c *Consumers) handle(b *batch) bool {
	if len(b.orders) > 0 {
		refused, ok := c.insert(b.orders)
		if !ok {
			return false
		}
		for i, err := range refused {
			if err != nil {
				b.poison = append(b.poison, poison{order: b.orders[i], err: err})
			}
		}
	}
	return c.park(b.poison)
}

func (c *Consumers) insert(orders []sale.Order) (refused []error, ok bool) {
	wait := c.newBackoff()
	for {
		ctx, cancel := context.WithTimeout(c.working, ms(c.cfg.InsertTimeoutMs))
		refused, err := c.orders.InsertOrders(ctx, orders)
		cancel()
		if err == nil {
			return refused, true
		}
		c.deps.Log.Warn("consumer: orders cannot be written now", "orders", len(orders), "error", err)
		// A store that is down when the consumers stop may stay down: the orders are safer in the queue.
		if !c.pause(c.receiving, wait) {
			return nil, false
		}
	}
}

func (c *Consumers) newBackoff() *backoff {
	return &backoff{min: ms(c.cfg.PauseMinMs), max: ms(c.cfg.PauseMaxMs)}
}

// pause waits; false when ctx ended first.
func (c *Consumers) pause(ctx context.Context, wait *backoff) bool {
	select {
	case <-c.deps.After(wait.wait()):
		return true
	case <-ctx.Done():
		return false
	}
}
