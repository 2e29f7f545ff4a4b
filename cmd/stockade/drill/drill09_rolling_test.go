//go:build services

package drill_test

import (
	"testing"
	"time"

	"stockade/cmd/stockade/proctest"
)

// Every node is asked to stop and started again, one after the other, while buyers buy.
func TestDrill09RollingRestart(t *testing.T) {
	rounds := 1
	if long() {
		rounds = 5
	}
	w := newWorld(t)
	w.step("two nodes, two SKUs, %d buyers", buyers)
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	c.awaitWins(50, 30*time.Second)
	for range rounds {
		for i := range 2 {
			w.step("SIGTERM of node %d of 2", i+1)
			begun := time.Now()
			w.must(w.node(i).Stop(proctest.StopBound))
			w.t.Logf("stopped after %v, bound %v", time.Since(begun).Round(time.Millisecond), proctest.StopBound)
			c.awaitWins(20, 10*time.Second)
			w.step("start another in its place")
			w.restart(i)
			c.awaitWins(20, 10*time.Second)
		}
	}
	w.step("the sale ends; audit")
	c.audit(settleBound)
	// A connection that waits for its next request may be closed just as that comes; the buyer hears nothing then.
	if n, wins := c.h.count(noAnswer), c.h.wins(); n > wins/50 {
		t.Errorf("%d purchases got no answer, beside %d accepted", n, wins)
	}
}
