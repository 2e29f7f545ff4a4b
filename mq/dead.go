package mq

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Bounds of a dead letter, in bytes.
const (
	// maxLetterBody is just enough for a body that was too long to be still too long.
	maxLetterBody = MaxEnvelopeBytes + 1
	maxLetterName = 255 // of Source and ContentType
)

// Burier deals with dead letters.
type Burier interface {
	// Bury records a letter, and what else is to be done about it. Letters with the same MessageID are the same one,
	// delivered again. An error is trouble with the infrastructure: the same call may succeed later.
	Bury(ctx context.Context, d sale.DeadLetter) error
}

// DeadConsumer hands on what is in the dead queue, one letter after the other. A letter is acked when it is buried.
// sale.ToggleConsumer pauses it: burying may end in order rows too.
type DeadConsumer struct {
	*workers
	burier Burier
}

// NewDeadConsumer returns a consumer that does nothing until Start.
func NewDeadConsumer(cfg Config, deps Deps, broker Broker, burier Burier) *DeadConsumer {
	d := &DeadConsumer{workers: newWorkers(cfg, deps, broker), burier: burier}
	d.queue, d.toggle, d.work = d.names.Dead, sale.ToggleConsumer, d.bury
	return d
}

func (c *DeadConsumer) bury(sub Subscription, d Delivery) bool {
	letter := c.letter(d)
	if !c.insist("bury a dead letter", func(ctx context.Context) error { return c.burier.Bury(ctx, letter) }) {
		return false
	}
	if err := sub.Ack(d); err != nil {
		c.deps.Log.Warn("consumer: a dead letter will be delivered again", "message", letter.MessageID, "error", err)
		return false
	}
	c.deps.Counters.buried.Add(1)
	return true
}

// letter fits a delivery into the bounds of a dead letter. The store must never refuse one: it would come again for
// ever.
func (c *DeadConsumer) letter(d Delivery) sale.DeadLetter {
	letter := sale.DeadLetter{
		MessageID:   letterID(d.Message),
		Error:       cut(d.Headers[HeaderError], maxErrorBytes),
		Source:      cut(d.Headers[HeaderSource], maxLetterName),
		ContentType: cut(d.ContentType, maxLetterName),
		Body:        d.Body,
		State:       sale.DeadOpen,
	}
	if letter.Source == "" {
		letter.Source = c.queue
	}
	if len(d.Body) > maxLetterBody {
		letter.Body = d.Body[:maxLetterBody:maxLetterBody]
		letter.Error = cut(fmt.Sprintf("body of %d bytes was cut off; %s", len(d.Body), letter.Error), maxErrorBytes)
	}
	if d.ContentType == EnvelopeType {
		sku, id := named(d.Body)
		letter.SKU = sku
		if id != (sale.OrderID{}) {
			letter.Order = &id
		}
	}
	return letter
}
