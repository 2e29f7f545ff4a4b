package mq

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names are the exchanges and queues of one installation.
type Names struct {
	Orders string             // direct exchange of everything about orders; each queue is bound to it under its own name
	Create string             // queue of envelopes
	Retry  [retryTiers]string // queues where poison events wait before they go back to Create
	Expire string             // queue of timeout messages that are due
	Dead   string             // fanout exchange of dead letters, and the queue that keeps them
	Events string             // topic exchange of notices

	delay string // begins the names of the delay queues
}

// retryTiers is how often a poison event is tried again.
const retryTiers = 3

// NamesFor derives the names from a prefix.
func NamesFor(prefix string) Names {
	n := Names{
		Orders: prefix + ".orders",
		Create: prefix + ".order.create",
		Expire: prefix + ".order.expire",
		Dead:   prefix + ".order.dead",
		Events: prefix + ".events",
		delay:  prefix + ".order.delay.",
	}
	for i := range n.Retry {
		n.Retry[i] = prefix + ".order.retry." + strconv.Itoa(i+1)
	}
	return n
}

// Delay is the queue where timeout messages of a payment window wait before they go to Expire.
func (n Names) Delay(window time.Duration) string {
	return n.delay + strconv.FormatInt(window.Milliseconds(), 10)
}

// Exchanges lists every exchange.
func (n Names) Exchanges() []string { return []string{n.Orders, n.Dead, n.Events} }

// Queues lists every queue but the delay queues, which are made when they are needed.
func (n Names) Queues() []string {
	return append([]string{n.Dead, n.Create, n.Expire}, n.Retry[:]...)
}

// queueSpec is a queue as both brokers make it.
type queueSpec struct {
	name, exchange string // bound to exchange under its own name
	maxMessages    int
	lifetime       time.Duration // after it, a message goes on to thenExchange under thenKey; 0: it waits for a consumer
	thenExchange   string
	thenKey        string
	surely         bool // what goes on is held until its next queue has it
}

// queueSpecs lists every queue but the delay queues.
func queueSpecs(cfg Config) []queueSpec {
	n := NamesFor(cfg.Prefix)
	specs := []queueSpec{
		{name: n.Dead, exchange: n.Dead, maxMessages: cfg.DeadMaxMessages},
		{
			name: n.Create, exchange: n.Orders, maxMessages: cfg.QueueMaxMessages,
			thenExchange: n.Dead, thenKey: n.Dead, surely: true,
		},
		{name: n.Expire, exchange: n.Orders, maxMessages: cfg.QueueMaxMessages},
	}
	for i, tier := range n.Retry {
		specs = append(specs, queueSpec{
			name: tier, exchange: n.Orders, maxMessages: cfg.QueueMaxMessages,
			lifetime: cfg.retryAfter(i), thenExchange: n.Orders, thenKey: n.Create, surely: true,
		})
	}
	return specs
}

// delaySpec is the delay queue of one payment window. One lifetime a queue: with many, a long one at the head would
// hold up the short ones behind it. What it drops on its way costs nothing but time, since a sweeper finds it.
func delaySpec(cfg Config, window time.Duration) queueSpec {
	n := NamesFor(cfg.Prefix)
	return queueSpec{
		name: n.Delay(window), exchange: n.Orders, maxMessages: cfg.QueueMaxMessages,
		lifetime: window, thenExchange: n.Orders, thenKey: n.Expire,
	}
}

// declare makes every exchange, queue and binding that is missing. Both sides do it before they use a channel, so that
// a broker that was set up anew loses nothing. It fails when one exists with other arguments.
func declare(ch *amqp.Channel, cfg Config, serverMajor int) error {
	n := NamesFor(cfg.Prefix)
	for _, e := range []struct{ name, kind string }{
		{n.Orders, amqp.ExchangeDirect},
		{n.Dead, amqp.ExchangeFanout},
		{n.Events, amqp.ExchangeTopic},
	} {
		if err := ch.ExchangeDeclare(e.name, e.kind, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %s: %w", e.name, err)
		}
	}
	for _, q := range queueSpecs(cfg) {
		if err := declareQueue(ch, q, cfg.QueueType, serverMajor); err != nil {
			return err
		}
	}
	return nil
}

func declareQueue(ch *amqp.Channel, q queueSpec, kind string, serverMajor int) error {
	if _, err := ch.QueueDeclare(q.name, true, false, false, false, queueArgs(q, kind, serverMajor)); err != nil {
		return fmt.Errorf("declare queue %s: %w", q.name, err)
	}
	if err := ch.QueueBind(q.name, q.name, q.exchange, false, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", q.name, err)
	}
	return nil
}

// queueArgs bounds a queue. A full one rejects the newcomer: dropping its head would lose what was confirmed.
func queueArgs(q queueSpec, kind string, serverMajor int) amqp.Table {
	args := amqp.Table{
		"x-queue-type": kind,
		"x-max-length": int64(q.maxMessages),
		"x-overflow":   "reject-publish",
	}
	if q.lifetime > 0 {
		args["x-message-ttl"] = q.lifetime.Milliseconds()
	}
	if q.thenExchange != "" {
		args["x-dead-letter-exchange"] = q.thenExchange
		args["x-dead-letter-routing-key"] = q.thenKey
	}
	if kind == QueueQuorum && q.surely {
		args["x-dead-letter-strategy"] = "at-least-once" // classic queues know no such thing: the outbox repairs them
	}
	if kind == QueueQuorum && serverMajor >= 4 {
		// Version 4 gives quorum queues a limit of 20 redeliveries; before, there is none and −1 is refused.
		args["x-delivery-limit"] = int64(-1)
	}
	return args
}

// serverMajor is the first number of the server's version, 0 when it does not say.
func serverMajor(conn *amqp.Connection) int {
	version, _ := conn.Properties["version"].(string)
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return n
}
