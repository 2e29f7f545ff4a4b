//go:build services

package drill_test

import (
	"testing"
	"time"

	"stockade/cmd/stockade/proctest"
)

// One in a hundred replies of Redis comes after the read timeout, or never.
func TestDrill07RepliesGetLost(t *testing.T) {
	const oneIn = 100
	w := newWorld(t)
	w.step("two nodes, two SKUs, a proxy before Redis, %d buyers", buyers)
	proxy := proctest.NewProxy(t, w.redis.Addr)
	w.configure([]string{proxy.Address()})
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	c.awaitWins(50, 30*time.Second)

	w.step("one reply in %d is lost or late", oneIn)
	proxy.Spoil(oneIn)
	hits := 0
	for begun := time.Now(); time.Since(begun) < span(8*time.Second, 2*time.Minute) || hits < 3; {
		c.awaitWins(20, 30*time.Second)
		hits += proxy.Spoil(oneIn)
	}
	hits += proxy.Spoil(0)
	w.step("replies are well again, after %d were spoilt", hits)
	c.awaitRecovery("Redis", c.h.now(), settleBound)

	w.step("the sale ends; audit")
	c.audit(settleBound)
}
