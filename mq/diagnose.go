package mq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
)

// Bounds of a diagnosis.
const (
	diagnoseTimeout = 5 * time.Second // waiting for the connection
	// A confirm takes at least a round trip; hundreds are in flight.
	pingWarn = 50 * time.Millisecond
	pingFail = 500 * time.Millisecond
	// backlogWarn is how many messages may wait in a queue before that is told.
	backlogWarn = 10_000
)

// queueVitals are what a broker says of one queue.
type queueVitals struct {
	name                string
	messages, consumers int
	missing             bool
	differs             string // what the broker says about our arguments; "" when the queue has them
}

// Diagnose checks the broker: whether it answers, whether the queues are there with the arguments that keep what was
// confirmed, whether somebody consumes, and what waits.
func (r *Rabbit) Diagnose(ctx context.Context) []sale.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	// A connection of its own: what it asks may end channels, and a broker that hangs must not hold up acks.
	asking := newLink(r.cfg, r.deps, r.cfg.Prefix+" doctor")
	defer asking.close()
	took, queues, err := r.examine(ctx, asking)
	if err != nil {
		return []sale.Finding{sale.CheckRabbitPing.Fail("", "no answer: "+err.Error(), "start RabbitMQ, or correct mq.url and what the user may do")}
	}
	ping := sale.CheckRabbitPing.Latency("", took, pingWarn, pingFail, "look for memory and disk alarms: rabbitmq-diagnostics status")
	return append([]sale.Finding{ping}, judgeQueues(queues, NamesFor(r.cfg.Prefix))...)
}

func (r *Rabbit) examine(ctx context.Context, asking *link) (took []time.Duration, all []queueVitals, err error) {
	for _, spec := range queueSpecs(r.cfg) {
		q := queueVitals{name: spec.name}
		asked, err := r.examineQueue(ctx, asking, spec, &q)
		if err != nil {
			return nil, nil, err
		}
		took, all = append(took, asked), append(all, q)
	}
	return took, all, nil
}

// examineQueue takes a channel for itself, which a broker closes when a queue is missing or has other arguments. It
// tells how long the first question took.
func (r *Rabbit) examineQueue(ctx context.Context, asking *link, spec queueSpec, q *queueVitals) (took time.Duration, err error) {
	ln, err := asking.open(ctx)
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, ln.cut)()
	err = ln.within(func() error {
		asked := time.Now()
		found, err := ln.QueueDeclarePassive(spec.name, true, false, false, false, nil)
		took = time.Since(asked)
		if refused(err, amqp.NotFound) {
			q.missing = true
			return nil
		}
		if err != nil {
			return err
		}
		q.messages, q.consumers = found.Messages, found.Consumers
		// It is there, so this only compares.
		_, err = ln.QueueDeclare(spec.name, true, false, false, false, queueArgs(spec, r.cfg.QueueType, serverMajor(ln.conn)))
		if refused(err, amqp.PreconditionFailed) {
			q.differs = reason(err)
			return nil
		}
		if err == nil {
			err = ln.Channel.Close()
		}
		return err
	})
	return took, cmp.Or(ctx.Err(), err)
}

// refused tells whether a broker closed a channel with this code.
func refused(err error, code int) bool {
	var e *amqp.Error
	return errors.As(err, &e) && e.Code == code
}

func reason(err error) string {
	var e *amqp.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// Diagnose has little to say of a broker that is this process.
func (m *Memory) Diagnose(context.Context) []sale.Finding {
	return []sale.Finding{sale.CheckRabbitPing.OK("", "the broker is inside this process")}
}

// judgeQueues makes findings of what a broker said of all queues but those of payment windows.
func judgeQueues(all []queueVitals, n Names) (findings []sale.Finding) {
	for _, q := range all {
		findings = append(findings, q.judge())
	}
	for _, name := range []string{n.Create, n.Expire, n.Dead} { // somebody must consume these
		i := slices.IndexFunc(all, func(q queueVitals) bool { return q.name == name })
		if i < 0 || all[i].missing {
			continue
		}
		findings = append(findings, all[i].judgeConsumers())
		if name == n.Dead {
			findings = append(findings, all[i].judgeDead())
		}
	}
	return findings
}

func (q queueVitals) judge() sale.Finding {
	seen := fmt.Sprintf("%d messages, its length is bounded and a full queue refuses", q.messages)
	switch {
	case q.missing:
		return sale.CheckRabbitQueues.Fail(q.name, "the queue is missing", "start a node: it declares what is missing")
	case q.differs != "":
		return sale.CheckRabbitQueues.Fail(q.name, "the queue has other arguments: "+q.differs,
			"correct the mq section, or drain and delete the queue; a node declares it anew")
	case q.messages > backlogWarn:
		return sale.CheckRabbitQueues.Warn(q.name, seen, "look at the toggle consumer, and add nodes or raise mq.consumers")
	}
	return sale.CheckRabbitQueues.OK(q.name, seen)
}

func (q queueVitals) judgeConsumers() sale.Finding {
	if q.consumers == 0 {
		return sale.CheckRabbitConsumers.Fail(q.name, "nobody consumes", "set the toggle consumer or expiry to run, and start nodes")
	}
	return sale.CheckRabbitConsumers.OK(q.name, fmt.Sprintf("%d consumers", q.consumers))
}

func (q queueVitals) judgeDead() sale.Finding {
	seen := fmt.Sprintf("%d dead letters wait to be recorded", q.messages)
	if q.messages > 0 {
		return sale.CheckRabbitDead.Warn(q.name, seen, "look why nobody records them: the node's log, MySQL, the toggle consumer")
	}
	return sale.CheckRabbitDead.OK(q.name, seen)
}
