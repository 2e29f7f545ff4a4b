package mq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Rabbit is a Broker on a RabbitMQ server. It publishes and consumes on separate connections, so that a server that
// slows publishers down does not slow down acks.
type Rabbit struct {
	cfg       Config
	deps      Deps
	publisher *publisher
	consuming *link
}

// NewRabbit returns a broker that connects, and keeps connecting, in the background.
func NewRabbit(cfg Config, deps Deps) *Rabbit {
	deps = deps.withDefaults()
	return &Rabbit{
		cfg:       cfg,
		deps:      deps,
		publisher: startPublisher(cfg, deps),
		consuming: newLink(cfg, deps, cfg.Prefix+" consumers"),
	}
}

// Publish implements Broker.
func (r *Rabbit) Publish(ctx context.Context, m Message, done func(Outcome)) {
	r.publisher.publish(ctx, m, done)
}

// Ready implements Broker.
func (r *Rabbit) Ready() bool { return r.publisher.isOpen() }

// Subscribe implements Broker.
func (r *Rabbit) Subscribe(ctx context.Context, queue string, prefetch int) (Subscription, error) {
	ln, err := r.consuming.open(ctx)
	if err != nil {
		return nil, err
	}
	var in <-chan amqp.Delivery
	err = ln.within(func() (err error) {
		if err = declare(ln.Channel, r.cfg, serverMajor(ln.conn)); err != nil {
			return err
		}
		if err = ln.Qos(prefetch, 0, false); err != nil {
			return err
		}
		in, err = ln.Consume(queue, "", false, false, false, false, nil)
		return err
	})
	if err != nil {
		_ = ln.within(ln.Channel.Close)
		return nil, fmt.Errorf("subscribe to %s: %w", queue, err)
	}
	s := &rabbitSubscription{line: ln, out: make(chan Delivery, prefetch)}
	s.pumping = make(chan struct{})
	go s.pump(in)
	return s, nil
}

// Close implements Broker.
func (r *Rabbit) Close() error {
	r.publisher.close()
	r.consuming.close()
	return nil
}

type rabbitSubscription struct {
	line    *line
	out     chan Delivery // never full: the server sends no more than prefetch ahead of the acks
	pumping chan struct{} // closed when the pump has ended
}

// pump ends when the channel closes or the server cancels the consumer: the client then closes in.
func (s *rabbitSubscription) pump(in <-chan amqp.Delivery) {
	defer close(s.pumping)
	defer close(s.out)
	for d := range in {
		s.out <- Delivery{
			Message: Message{
				Exchange:    d.Exchange,
				Key:         d.RoutingKey,
				ID:          d.MessageId,
				ContentType: d.ContentType,
				Headers:     headersFrom(d.Headers),
				Body:        d.Body,
			},
			Redelivered: d.Redelivered,
			tag:         d.DeliveryTag,
		}
	}
}

// Deliveries implements Subscription.
func (s *rabbitSubscription) Deliveries() <-chan Delivery { return s.out }

// Ack implements Subscription.
func (s *rabbitSubscription) Ack(ds ...Delivery) error {
	return s.each(ds, func(tag uint64) error { return s.line.Ack(tag, false) })
}

// Requeue implements Subscription.
func (s *rabbitSubscription) Requeue(ds ...Delivery) error {
	return s.each(ds, func(tag uint64) error { return s.line.Nack(tag, false, true) })
}

func (s *rabbitSubscription) each(ds []Delivery, tell func(tag uint64) error) error {
	for _, d := range ds {
		if err := tell(d.tag); err != nil {
			return errors.Join(ErrLost, err)
		}
	}
	return nil
}

// Close implements Subscription.
func (s *rabbitSubscription) Close() {
	_ = s.line.within(s.line.Channel.Close) // a channel that is closed already says nothing new
	<-s.pumping
}

func headersFrom(t amqp.Table) map[string]string {
	if len(t) == 0 {
		return nil
	}
	headers := make(map[string]string, len(t))
	for k, v := range t {
		headers[k] = fmt.Sprint(v)
	}
	return headers
}

func headersTo(headers map[string]string) amqp.Table {
	if len(headers) == 0 {
		return nil
	}
	t := make(amqp.Table, len(headers))
	for k, v := range headers {
		t[k] = v
	}
	return t
}
