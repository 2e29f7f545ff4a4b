package mq

import (
	"strconv"
	"strings"

	"stockade/biz/sale"
)

// Headers of messages in retry tiers and of dead letters.
const (
	HeaderAttempt = "x-stockade-attempt" // retry tiers that it went through, the one it is in included
	HeaderError   = "x-stockade-error"   // why it could not be written the last time, at most maxErrorBytes
	HeaderSource  = "x-stockade-source"  // the queue it was consumed from

	maxErrorBytes = 1024
)

// poison is an order that cannot be written, or a message that cannot be read. It travels in a message of its own.
type poison struct {
	id          string
	contentType string
	body        []byte
	order       bool // it can be read
	attempt     int
	err         error
}

// poisonOrder wraps an order. It is not checked against the limits of an envelope: whatever came in must get out.
func poisonOrder(o sale.Order, attempt int, err error) poison {
	body, _ := strictJSON.Marshal(envelope{[]sale.Order{o}}) // it was decoded from JSON, so it encodes
	return poison{
		id: eventID(o.ID, body), contentType: EnvelopeType, body: body, order: true, attempt: attempt, err: err,
	}
}

// attemptOf reads our own header: those that the broker adds about dead-lettering are lost or wrong once a message was
// published anew. A message without a readable one has been through no tier.
func attemptOf(d Delivery) int {
	n, err := strconv.Atoi(d.Headers[HeaderAttempt])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// retry brings each poison event into its next retry tier, or into the dead queue behind the last one, and waits until
// the broker has all of them, trying again for as long as it takes. False means that the deliveries must not be acked.
func (c *Consumers) retry(left []poison) bool {
	if len(left) == 0 {
		return true
	}
	wait := c.newBackoff()
	for {
		left = c.tryRetry(left)
		if len(left) == 0 {
			return c.deps.Faults.At(c.working, sale.RetryPublished) == nil
		}
		c.deps.Log.Warn("consumer: the broker does not take poison events now", "events", len(left))
		if !c.pause(c.receiving, wait) || c.paused() {
			return false
		}
	}
}

// tryRetry publishes each once and returns those that were not confirmed.
func (c *Consumers) tryRetry(all []poison) (left []poison) {
	msgs := make([]Message, len(all))
	for i, p := range all {
		msgs[i] = c.retryMessage(p)
	}
	outcomes := publishAll(c.working, c.broker, msgs)
	for i, p := range all {
		if outcomes[i] != Confirmed {
			left = append(left, p)
			continue
		}
		c.count(p)
	}
	return left
}

func (c *Consumers) count(p poison) {
	switch {
	case p.attempt < retryTiers:
		c.deps.Counters.retried.Add(1)
		c.deps.Log.Warn("consumer: an event cannot be written and will be tried again",
			"message", p.id, "tier", p.attempt+1, "error", p.err)
		return
	case p.order:
		c.deps.Counters.refused.Add(1)
	default:
		c.deps.Counters.undecodable.Add(1)
	}
	c.deps.Log.Error("consumer: an event is a dead letter", "message", p.id, "error", p.err)
}

func (c *Consumers) retryMessage(p poison) Message {
	m := Message{
		Exchange:    c.names.Dead,
		Key:         c.names.Dead,
		ID:          p.id,
		ContentType: p.contentType,
		Headers: map[string]string{
			HeaderAttempt: strconv.Itoa(min(p.attempt, retryTiers)),
			HeaderError:   cut(p.err.Error(), maxErrorBytes),
			HeaderSource:  c.names.Create,
		},
		Body:      p.body,
		Mandatory: true,
	}
	if p.attempt < retryTiers {
		m.Exchange, m.Key = c.names.Orders, c.names.Retry[p.attempt]
		m.Headers[HeaderAttempt] = strconv.Itoa(p.attempt + 1)
	}
	return m
}

// cut returns at most limit bytes of s, as valid UTF-8.
func cut(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}
