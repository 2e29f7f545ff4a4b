package mq

import (
	"context"
	"fmt"

	"stockade/biz/sale"
)

// Replayer sends dead letters to the order queue once more.
type Replayer struct {
	cfg    Config
	names  Names
	broker Broker
}

// NewReplayer returns a replayer that publishes with broker.
func NewReplayer(cfg Config, broker Broker) *Replayer {
	return &Replayer{cfg: cfg, names: NamesFor(cfg.Prefix), broker: broker}
}

// Replay publishes a letter's body as it came, with all its retry tiers before it again, and returns when the broker has
// it: after Config.ConfirmTimeoutMs at the latest. sale.ErrUnavailable when the broker did not say so; it may have the
// letter all the same, which is harmless: an order is written once, however often it arrives.
func (r *Replayer) Replay(ctx context.Context, d sale.DeadLetter) error {
	ctx, cancel := context.WithTimeout(ctx, ms(r.cfg.ConfirmTimeoutMs))
	defer cancel()
	outcome := publishAll(ctx, r.broker, []Message{{
		Exchange:    r.names.Orders,
		Key:         r.names.Create,
		ID:          d.MessageID,
		ContentType: d.ContentType,
		Body:        d.Body,
		Mandatory:   true,
	}})[0]
	if outcome != Confirmed {
		return fmt.Errorf("replay dead letter %d: the broker's answer is %q: %w", d.Seq, outcome, sale.ErrUnavailable)
	}
	return nil
}
