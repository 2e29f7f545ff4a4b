//go:build services

package drill_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// nodeBound is how long a dead node's undecided takes may stay so.
const nodeBound = 10 * time.Second

// One of two nodes is killed at a random moment, again and again in one sale.
func TestDrill01NodesAreKilled(t *testing.T) {
	kills := 4
	if long() {
		kills = 20
	}
	w := newWorld(t)
	w.step("two nodes, one SKU of plenty and one of little, %d buyers", buyers)
	w.start(2)
	plenty, little := w.create(1_000_000, 2, 8), w.create(400, 2, 8)
	c := w.open(plenty, little)
	c.topUp(plenty, little)
	for k := range kills {
		c.awaitWins(50+rand.IntN(150), 30*time.Second)
		victim := k % 2
		w.step("kill -9 of node %d of 2", victim+1)
		w.node(victim).Kill()
		killed := c.h.now()
		c.awaitRecovery("the other node", killed, nodeBound)
		w.step("start another node in its place")
		w.restart(victim)
	}
	c.awaitWins(50, 30*time.Second)
	w.step("kill -9 of node 1, and the sale ends")
	w.node(0).Kill()
	c.close()
	w.step("audit: everything settles within %v of the last kill", nodeBound)
	c.audit(nodeBound)
	c.wantTopUps()
}
