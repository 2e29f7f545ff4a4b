//go:build services

package drill_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
	"stockade/mq"
)

// killable is a node with a socket on which faults are armed.
type killable struct {
	*proctest.Node
	socket string
}

// launchKillable starts a node whose faults can be armed.
func (w *world) launchKillable() killable {
	w.t.Helper()
	name := fmt.Sprintf("n%d", len(w.launched)+1)
	k := killable{socket: filepath.Join(w.dir, name)}
	program := house.program
	program.Env = append([]string{"STOCKADE_TEST_FAULTS=" + k.socket}, program.Env...)
	k.Node = proctest.Launch(w.t, program, name, w.config)
	w.launched = append(w.launched, k.Node)
	return k
}

// startKillable puts new nodes in the places of all others, which are gone.
func (w *world) startKillable(count int) (all []killable) {
	w.t.Helper()
	for range count {
		all = append(all, w.launchKillable())
	}
	nodes := make([]*proctest.Node, count)
	for i, k := range all {
		k.AwaitReady()
		nodes[i] = k.Node
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = nodes
	return all
}

// Every consumer dies in the middle of a batch: before anything is written, after the commit and before the ack, and at
// random.
func TestDrill06ConsumersDie(t *testing.T) {
	random := 2
	if long() {
		random = 20
	}
	w := newWorld(t)
	w.step("two nodes, two SKUs, %d buyers", buyers)
	nodes := w.startKillable(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	again := func(what string) {
		nodes = w.startKillable(2)
		c.awaitRecovery(what, c.h.now(), nodeBound)
	}
	for _, point := range []sale.Point{sale.ConsumerReceived, sale.ConsumerWritten} {
		c.awaitWins(50, 30*time.Second)
		w.step("both nodes die at %s", point)
		for _, k := range nodes {
			_, err := proctest.AskFaults(k.socket, proctest.FaultRequest{
				Arm: &proctest.Fault{Point: point, Action: proctest.FaultKill, Count: 1},
			})
			w.must(err)
		}
		for i, k := range nodes {
			eventually(t, 30*time.Second, fmt.Sprintf("node %d dies at %s", i+1, point), func() bool { return !k.Alive() })
		}
		w.step("two others start")
		again("consumers that died at " + string(point))
		c.awaitDrained("consumers that died at " + string(point))
	}
	for range random {
		c.awaitWins(50+rand.IntN(100), 30*time.Second)
		w.step("kill -9 of both nodes, at any moment")
		for _, k := range nodes {
			k.Kill()
		}
		again("nodes killed")
	}
	c.awaitDrained("nodes killed")
	w.step("the sale ends; audit")
	c.audit(drainBound)
}

// Every message about orders comes twice: envelopes, and reminders that orders are due.
func TestDrill06MessagesComeTwice(t *testing.T) {
	const window = 2 * time.Second
	w := newWorld(t)
	w.step("two nodes, an SKU that nobody pays for in time, another one, a relay that repeats, %d buyers", buyers)
	w.start(2)
	repeated, heard := w.repeat(), w.listen()
	unpaid := w.createFor(window, 5000, 2, 8)
	c := w.open(w.create(1_000_000, 2, 8), unpaid)
	c.awaitWins(100, 30*time.Second)
	pass(span(6*time.Second, 20*time.Second)) // a minute's history of an SKU that all this closes took the checker too long

	w.step("the sale ends; audit")
	c.audit(window + drainBound)
	repeated.mu.Lock()
	w.ok(repeated.wrong)
	repeated.mu.Unlock()
	names := mq.NamesFor(w.name)
	envelopes, timeouts := repeated.count(names.Create), repeated.count(names.Expire)
	t.Logf("%d envelopes and %d timeout messages came twice", envelopes, timeouts)
	if envelopes == 0 || timeouts == 0 {
		t.Error("nothing came twice")
	}
	var created, gone []string
	seldom(t, window+linkBound, "every unpaid order is closed", func() bool {
		tr, err := w.truth(unpaid)
		return err == nil && tr.livesum == 0
	})
	for _, s := range w.skus {
		tr, err := w.truth(s)
		w.must(err)
		for id, r := range tr.rows {
			created = append(created, id)
			if r.state == sale.OrderClosed {
				gone = append(gone, id)
			}
		}
	}
	w.expectOnce(heard, sale.TopicCreated, created)
	w.expectOnce(heard, sale.TopicClosed, gone)
}
