package mq

import (
	"strings"

	"stockade/biz/sale"
)

// Headers of a parked message.
const (
	HeaderError  = "x-stockade-error"  // why it was parked, at most maxErrorBytes
	HeaderSource = "x-stockade-source" // the queue it was consumed from

	maxErrorBytes = 1024
)

// poison is an order, or a whole message, that can never be written.
type poison struct {
	order sale.Order
	whole *Delivery // the message when it could not even be read
	err   error
}

// park brings poison to the dead queue and waits until the broker has all of it, trying again for as long as it takes.
// False means that there is no time left: the deliveries must not be acked.
func (c *Consumers) park(left []poison) bool {
	wait := c.newBackoff()
	for {
		left = c.tryPark(left)
		if len(left) == 0 {
			return true
		}
		c.deps.Log.Warn("consumer: the dead queue does not take poison events now", "events", len(left))
		if !c.pause(c.receiving, wait) {
			return false
		}
	}
}

// tryPark publishes each once and returns those that were not confirmed.
func (c *Consumers) tryPark(all []poison) (left []poison) {
	msgs := make([]Message, len(all))
	for i, p := range all {
		msgs[i] = c.parkedMessage(p)
	}
	outcomes := publishAll(c.working, c.broker, msgs)
	for i, p := range all {
		if outcomes[i] != Confirmed {
			left = append(left, p)
			continue
		}
		if p.whole != nil {
			c.deps.Counters.undecodable.Add(1)
			c.deps.Log.Error("consumer: parked an unreadable message", "message", p.whole.ID, "error", p.err)
		} else {
			c.deps.Counters.refused.Add(1)
			c.deps.Log.Error("consumer: parked an order", "order", p.order.ID, "error", p.err)
		}
	}
	return left
}

// parkedMessage is the message as it came, or an envelope of the one order. It is not checked against the limits of an
// envelope: whatever came in must get out.
func (c *Consumers) parkedMessage(p poison) Message {
	m := Message{
		Exchange: c.names.Dead,
		Key:      c.names.Dead,
		Headers: map[string]string{
			HeaderError:  cut(p.err.Error(), maxErrorBytes),
			HeaderSource: c.names.Create,
		},
		Mandatory: true,
	}
	if p.whole != nil {
		m.ID, m.ContentType, m.Body = p.whole.ID, p.whole.ContentType, p.whole.Body
		return m
	}
	m.ID, m.ContentType = p.order.ID.String(), EnvelopeType
	m.Body, _ = strictJSON.Marshal(envelope{[]sale.Order{p.order}}) // it was decoded from JSON, so it encodes
	return m
}

// cut returns at most limit bytes of s, as valid UTF-8.
func cut(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}
