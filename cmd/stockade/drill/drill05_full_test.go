//go:build services

package drill_test

import (
	"context"
	"testing"
	"time"
)

// The order queue is full and rejects what is published, because consumers cannot write.
func TestDrill05QueueIsFull(t *testing.T) {
	w := newWorld(t, "mq.queueMaxMessages: 2", "mq.prefetch: 1", "mq.consumers: 1")
	w.step("two nodes, a queue that holds 2 envelopes, %d buyers", buyers)
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8))
	c.awaitWins(50, 30*time.Second)

	w.step("nobody can write orders")
	ctx := context.Background()
	conn, err := w.db.Conn(ctx)
	w.must(err)
	defer conn.Close()
	_, err = conn.ExecContext(ctx, "LOCK TABLES orders WRITE")
	w.must(err)
	c.sellsThrough("full queue", span(4*time.Second, 30*time.Second))
	w.step("orders can be written again")
	_, err = conn.ExecContext(ctx, "UNLOCK TABLES")
	w.must(err)
	c.awaitDrained("the full queue")

	w.step("the sale ends; audit")
	c.audit(drainBound)
}
