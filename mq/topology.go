package mq

import (
	"fmt"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names are the exchanges and queues of one installation.
type Names struct {
	Orders string // direct exchange of envelopes
	Create string // queue of envelopes, bound to Orders under its own name
	Dead   string // fanout exchange of parked messages, and the queue that keeps them
	Events string // topic exchange of notices
}

// NamesFor derives the names from a prefix.
func NamesFor(prefix string) Names {
	return Names{
		Orders: prefix + ".orders",
		Create: prefix + ".order.create",
		Dead:   prefix + ".order.dead",
		Events: prefix + ".events",
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
	create := queueArgs(cfg.QueueType, cfg.QueueMaxMessages, serverMajor)
	create["x-dead-letter-exchange"] = n.Dead
	create["x-dead-letter-routing-key"] = n.Dead
	if cfg.QueueType == QueueQuorum {
		create["x-dead-letter-strategy"] = "at-least-once"
	}
	for _, q := range []struct {
		name, exchange string
		args           amqp.Table
	}{
		{n.Dead, n.Dead, queueArgs(cfg.QueueType, cfg.DeadMaxMessages, serverMajor)},
		{n.Create, n.Orders, create},
	} {
		if _, err := ch.QueueDeclare(q.name, true, false, false, false, q.args); err != nil {
			return fmt.Errorf("declare queue %s: %w", q.name, err)
		}
		if err := ch.QueueBind(q.name, q.name, q.exchange, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", q.name, err)
		}
	}
	return nil
}

// queueArgs bounds a queue. A full one rejects the newcomer: dropping its head would lose what was confirmed.
func queueArgs(kind string, maxMessages, serverMajor int) amqp.Table {
	args := amqp.Table{
		"x-queue-type": kind,
		"x-max-length": int64(maxMessages),
		"x-overflow":   "reject-publish",
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
