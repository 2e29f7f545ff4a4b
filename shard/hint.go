package shard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Times of listening for hints.
const (
	hintQuiet = 5 * time.Second        // silence after which the connection is asked for a sign of life
	hintWait  = 200 * time.Millisecond // before another try to connect
)

// Send tells every node that something about a SKU changed. Nobody may hear it.
func (g *Gate) Send(ctx context.Context, sku string) error {
	if err := g.client.Publish(ctx, hintChannel(g.cfg.Prefix), sku).Err(); err != nil {
		return fmt.Errorf("shard: hint: %w", err)
	}
	return nil
}

// Listen calls f with the SKU of every hint, and with "" whenever it has just subscribed, because hints may have been
// lost before. It reconnects by itself and returns when ctx ends. f must not block for long.
func (g *Gate) Listen(ctx context.Context, f func(sku string)) {
	for ctx.Err() == nil {
		g.listenOnce(ctx, f)
		select {
		case <-ctx.Done():
		case <-time.After(hintWait):
		}
	}
}

// listenOnce listens until the connection fails.
func (g *Gate) listenOnce(ctx context.Context, f func(sku string)) {
	sub := g.client.Subscribe(ctx, hintChannel(g.cfg.Prefix))
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() }) // a blocked read does not see ctx end
	defer func() {
		stop()
		_ = sub.Close()
	}()
	for quiet := 0; ; {
		message, err := sub.ReceiveTimeout(ctx, hintQuiet)
		var timeout net.Error
		switch {
		case err == nil:
			quiet = 0
		case errors.As(err, &timeout) && timeout.Timeout() && quiet == 0:
			// A server that vanished without a word shows in the missing answer.
			if quiet++; sub.Ping(ctx) != nil {
				return
			}
		default:
			return
		}
		switch m := message.(type) {
		case *redis.Subscription:
			f("")
		case *redis.Message:
			f(m.Payload)
		}
	}
}
