// Package mq brings accepted orders from the outbox to the consumers that write them, over RabbitMQ or a broker inside
// the process. The relay publishes, the consumers write, sweepers repair what either of them lost.
package mq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// ErrLost says that a subscription is over: what was not acked will be delivered again, to somebody.
var ErrLost = errors.New("subscription lost")

// Broker carries messages at least once.
//
// The contract: a message whose outcome is Confirmed is durable in every queue that its route leads to, until a
// consumer acks it. Any other outcome promises nothing, not even that it was not delivered: publish it again, under the
// same ID, until it is Confirmed. A delivery that was not acked comes again when its subscription ends. Consumers
// therefore see every message at least once, in no order, and must not mind repetitions.
//
// All methods may be called from many goroutines.
type Broker interface {
	// Publish sends a message and returns before its outcome is known; many may be in flight. done is called exactly
	// once, from this or another goroutine, and must not block. Publish waits while Config.MaxInFlight messages are
	// unconfirmed, at most until ctx ends. Neither Publish nor done waits for a broker that is away: the outcome is
	// then NotSent at once, or Unknown after Config.ConfirmTimeoutMs.
	Publish(ctx context.Context, m Message, done func(Outcome))
	// Ready tells whether a message published now has a chance: the broker is connected and does not block publishers.
	Ready() bool
	// Subscribe starts deliveries from a queue, at most prefetch of them unacked. It is one try, bounded in time.
	Subscribe(ctx context.Context, queue string, prefetch int) (Subscription, error)
	// Diagnose checks the broker and the queues, within a few seconds.
	Diagnose(ctx context.Context) []sale.Finding
	// Close ends all subscriptions and gives every pending publish its outcome. Later calls get NotSent and ErrLost.
	Close() error
}

// Subscription is one consumer's stream of deliveries. It belongs to one goroutine.
type Subscription interface {
	// Deliveries holds at most prefetch deliveries. It is closed when the subscription ends, from either side.
	Deliveries() <-chan Delivery
	// Ack lets the broker forget these deliveries; ErrLost when it can no longer be told.
	Ack(ds ...Delivery) error
	// Requeue gives them back, to be delivered again soon; ErrLost when the broker does so anyway.
	Requeue(ds ...Delivery) error
	// Close ends the subscription; what is not acked goes back to the queue.
	Close()
}

// Message is what travels.
type Message struct {
	Exchange    string
	Key         string // routing key
	ID          string // the same for every publishing of the same content
	ContentType string
	Headers     map[string]string
	Body        []byte // not to be changed once published
	Mandatory   bool   // a message that no queue takes is Returned instead of Confirmed

	// Delay, when it is not 0, makes the broker see to the delay queue of that length before it publishes. Key names
	// the queue, see Names.Delay. There may be at most maxDelays lengths.
	Delay time.Duration
}

// Delivery is a message on its way to a consumer.
type Delivery struct {
	Message
	Redelivered bool // it may have been handed out before
	tag         uint64
}

// Outcome is what became of a published message. Only Confirmed means delivered.
type Outcome uint8

// The outcomes of a publish.
const (
	Confirmed Outcome = iota + 1 // durable at the broker
	Returned                     // mandatory, and no queue takes its key
	Rejected                     // the broker refused it, most often because a queue is full
	Unknown                      // sent, and the confirm did not come
	NotSent                      // it never left this process
)

func (o Outcome) String() string {
	switch o {
	case Confirmed:
		return "confirmed"
	case Returned:
		return "returned"
	case Rejected:
		return "rejected"
	case Unknown:
		return "unknown"
	case NotSent:
		return "not sent"
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// Open returns the broker that cfg chooses. It does not wait for a server: a broker that is away now is connected to
// when it comes.
func Open(cfg Config, deps Deps) (Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Driver == DriverMemory {
		return NewMemory(cfg, deps), nil
	}
	return NewRabbit(cfg, deps), nil
}

// publishAll publishes messages together and waits for their outcomes. When ctx ends first, those still open are
// Unknown.
func publishAll(ctx context.Context, b Broker, msgs []Message) []Outcome {
	type numbered struct {
		i int
		o Outcome
	}
	known := make(chan numbered, len(msgs))
	for i, m := range msgs {
		b.Publish(ctx, m, func(o Outcome) { known <- numbered{i, o} })
	}
	outcomes := make([]Outcome, len(msgs))
	for i := range outcomes {
		outcomes[i] = Unknown
	}
	for range msgs {
		select {
		case k := <-known:
			outcomes[k.i] = k.o
		case <-ctx.Done():
			return outcomes
		}
	}
	return outcomes
}
