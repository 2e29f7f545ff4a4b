//go:build services

package drill_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// Bounds of the walk through the crash points.
const (
	reachBound = 30 * time.Second // from arming an action to its happening
	winsBefore = 3                // purchases accepted before an action is armed
	winsAfter  = 5                // and after it happened: the sale goes on
	takeOver   = 15 * time.Second // until they are accepted; a reshare whose node died is taken over after 2 s
)

// actions is what happens at each point. The kill comes last: while another node starts in place of the dead one, the
// next point is walked through on the one that is left.
var actions = [...]proctest.FaultAction{proctest.FaultPause, proctest.FaultError, proctest.FaultKill}

// walkSettings make nodes come round to everything soon. As in the defaults, a purchase and its promise together are
// over before the journal sweeper looks at the take.
var walkSettings = []string{
	"router.paymentSecrets=" + walkSecret,
	"service.purchaseTimeoutMs=1500", "service.promiseTimeoutMs=1000", "service.journalAgeMs=2600",
	"service.journalEveryMs=500", "service.expiryEveryMs=500",
	"mq.noticeSweepAfterMs=200", "mq.retry1Ms=20", "mq.retry2Ms=20", "mq.retry3Ms=20",
}

// walk is a sale during which each action happens once at each point.
type walk struct {
	*world
	market  *market
	sockets map[*proctest.Node]string // where a node is told what to do to itself
	coming  *proctest.Node            // started in place of a dead one, not yet ready
	place   int                       // of coming
	ripe    []*stall                  // over, to be audited
	audited []*stall
	slowest time.Duration // audit, from the end of a stall's sale
}

// A node dies, fails and stands still at every point between two durable steps, and nothing is lost or sold twice.
func TestEveryCrashPoint(t *testing.T) {
	begun := time.Now()
	w := &walk{world: newWorld(t), sockets: map[*proctest.Node]string{}}
	w.step("two nodes, %d buyers; orders are paid, cancelled, or expire after %v", walkers, walkWindow)
	w.nodes = []*proctest.Node{w.launchArmed(), w.launchArmed()}
	for _, n := range w.nodes {
		n.AwaitReady()
	}
	w.market = openMarket(w)
	for i, p := range w.points() {
		for _, action := range actions {
			w.visit(p, action, i%len(w.nodes))
			w.auditRipe()
		}
	}
	w.awaitComing()
	w.market.close()
	w.step("the sale ends; audit of what is left to audit")
	w.market.current.Store(nil)
	seldom(t, 2*stallBound, "every sale is audited", func() bool { w.auditRipe(); return len(w.ripe) == 0 })
	w.recount()
	t.Logf("walked in %v; the slowest audit came out %v after its sale, bound %v", time.Since(begun).Round(time.Millisecond),
		w.slowest.Round(time.Millisecond), stallBound)
}

// visit has an action happen at a point on a node, during a sale of its own, and puts the sale among those to be audited.
func (w *walk) visit(p crashPoint, action proctest.FaultAction, i int) {
	w.t.Helper()
	begun := time.Now()
	if p.both || action == proctest.FaultKill {
		w.awaitComing()
	}
	s := w.market.open(p.point, action)
	n := w.node(i)
	s.awaitWins(w, winsBefore, reachBound)
	if p.before != nil {
		p.before(w, s)
	}
	w.arm(n, proctest.Fault{Point: p.point, Action: action, Count: 1})
	w.drive(p, s, n, action)
	happened := time.Since(begun)
	if p.after != nil {
		p.after(w, s)
	}
	if action == proctest.FaultKill {
		w.coming, w.place = w.launchArmed(), i
	}
	s.awaitWins(w, winsAfter, takeOver)
	w.ripe = append(w.ripe, s)
	w.step("%s at %s: happened after %v, %d more accepted after %v", action, p.point, happened.Round(time.Millisecond),
		winsAfter, time.Since(begun).Round(time.Millisecond))
}

// drive brings the node to the point, again and again until the action has happened there.
func (w *walk) drive(p crashPoint, s *stall, n *proctest.Node, action proctest.FaultAction) {
	w.t.Helper()
	deadline := time.Now().Add(reachBound)
	for p.drive != nil && time.Now().Before(deadline) {
		p.drive(w, s, n)
		for again := time.Now().Add(p.patience); time.Now().Before(again); pass(10 * time.Millisecond) {
			if w.happened(n, action) {
				return
			}
		}
	}
	eventually(w.t, time.Until(deadline), fmt.Sprintf("%s at %s", action, p.point), func() bool { return w.happened(n, action) })
}

// happened tells whether what is armed at a node has happened.
func (w *walk) happened(n *proctest.Node, action proctest.FaultAction) bool {
	if action == proctest.FaultKill || !n.Alive() {
		return !n.Alive()
	}
	reply, err := proctest.AskFaults(w.sockets[n], proctest.FaultRequest{})
	w.must(err)
	return reply.Left == 0
}

func (w *walk) arm(n *proctest.Node, f proctest.Fault) {
	w.t.Helper()
	_, err := proctest.AskFaults(w.sockets[n], proctest.FaultRequest{Arm: &f})
	w.must(err)
}

// launchArmed starts a node that listens on a socket for what it is to do to itself.
func (w *walk) launchArmed() *proctest.Node {
	w.t.Helper()
	name := fmt.Sprintf("n%d", len(w.launched)+1)
	socket := filepath.Join(w.dir, name)
	program := proctest.Program{
		Path: house.program.Path, Env: append(slices.Clone(house.program.Env), "STOCKADE_TEST_FAULTS="+socket),
	}
	n := proctest.Launch(w.t, program, name, w.config, walkSettings...)
	n.Expect("an event is a dead letter", "message dead-lettered") // that is what poison becomes
	w.launched, w.sockets[n] = append(w.launched, n), socket
	return n
}

// awaitComing waits for the node that was started last, and lets buyers in.
func (w *walk) awaitComing() {
	w.t.Helper()
	if w.coming == nil {
		return
	}
	w.coming.AwaitReady()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[w.place], w.coming = w.coming, nil
}

// recount reads in the nodes' own words what happened to them, and misses nothing.
func (w *walk) recount() {
	w.t.Helper()
	seen := map[string]int{}
	for _, n := range w.launched {
		for _, line := range n.MustLines() {
			if strings.Contains(line, proctest.FaultFired) {
				seen[line]++
			}
		}
	}
	reached := 0
	for _, p := range sale.Points {
		for _, action := range actions {
			line := fmt.Sprintf(`{"level":"WARN","msg":%q,"point":%q,"action":%q}`, proctest.FaultFired, p, action)
			if seen[line] == 0 {
				w.t.Errorf("%s never happened at %s", action, p)
				continue
			}
			reached++
		}
	}
	w.t.Logf("%d points, %d actions, each at each: %d of %d happened", len(sale.Points), len(actions), reached,
		len(sale.Points)*len(actions))
}
