//go:build services

package drill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// sickRedis is how late a sick master answers, in ms: almost as long as a lane waits. Redis that is well takes more than the
// 50 ms of the usual rule now and then while nodes under the race detector, servers and buyers share this machine.
const sickRedis = 200

// govern writes a file of breakers' rules, which nodes that start from now on go by.
func (w *world) govern(rules string) {
	w.t.Helper()
	path := filepath.Join(w.dir, "breakers.yaml")
	w.must(os.WriteFile(path, []byte(rules), 0o600))
	w.set("limiter", "breakersFile: "+path)
}

// breakers reads the breakers of a node by name.
func (w *world) breakers(n *proctest.Node) map[string]handler.BreakerJSON {
	w.t.Helper()
	var all handler.BreakersJSON
	w.must(n.Read("/admin/v1/breakers", &all))
	byName := map[string]handler.BreakerJSON{}
	for _, b := range all.Breakers {
		byName[b.Name] = b
	}
	return byName
}

// awaitBreaker waits until a breaker of both nodes is in a state.
func (w *world) awaitBreaker(name, state string, bound time.Duration) {
	w.t.Helper()
	for i := range w.nodes {
		n := w.node(i)
		took := eventually(w.t, bound, name+" is "+state, func() bool { return w.breakers(n)[name].State == state })
		w.t.Logf("node %d: %s is %s after %v: %s", i+1, name, state, took.Round(time.Millisecond), w.breakers(n)[name].Why)
	}
}

// One of three Redis masters answers late. The lanes to it open and no other breaker does: its buyers hear BUSY at once, and
// buyers whose slots are elsewhere do not notice. When it is well again, the lanes close by themselves.
func TestDrill10OneMasterIsSlow(t *testing.T) {
	const slots, victim = 16, 1
	w := newWorld(t)
	w.step("a Redis Cluster of %d masters behind links, two nodes, %d buyers", masters, buyers)
	cluster := startCluster(t, w, masters)
	w.configure(cluster.announce(t, w), "shard.cluster: true")
	rest, slowMs, slowPercent := 3*time.Second, 120, 60 // a machine that runs other tests meanwhile must not open a lane
	if long() {
		rest, slowMs, slowPercent = 10*time.Second, 50, 30 // as nodes do by default
	}
	w.govern(fmt.Sprintf("lanes: {slowMs: %d, slowPercent: %d, openMs: %d}\n", slowMs, slowPercent, rest.Milliseconds()))
	w.start(2)
	s := w.create(1_000_000, 2, slots)
	c := w.open(s)
	c.awaitWins(200, 30*time.Second)
	theirs := cluster.slotsOf(t, s, victim)
	elsewhere := func(a attempt) bool { return !theirs[int(xxhash.Sum64String(a.buyer)%slots)] }
	lane := sale.BreakerLane + cluster.links[victim].Addr()
	stretch := span(2*time.Second, 20*time.Second)

	began := c.h.now()
	pass(stretch)
	calm := c.h.times(began, elsewhere)
	w.step("master %d, slots %v, answers %d ms late", victim+1, theirs, sickRedis)
	cluster.links[victim].Slow(proctest.Back, sickRedis)
	w.awaitBreaker(lane, sale.BreakerOpen, 10*time.Second)
	began = c.h.now()
	pass(stretch)
	rough := c.h.times(began, elsewhere)
	for i := range w.nodes {
		for name, b := range w.breakers(w.node(i)) {
			t.Logf("node %d: %s is %s, %d changes, %d refused", i+1, name, b.State, b.Changes, b.Refused)
			if name != lane && b.Changes != 0 {
				t.Errorf("node %d: %s opened, too: %s", i+1, name, b.Why)
			}
			if name == lane && b.Refused == 0 {
				t.Errorf("node %d: an open lane refused nothing", i+1)
			}
		}
	}
	refused := slices.ContainsFunc(c.h.all(), func(a attempt) bool {
		return a.call >= began && !elsewhere(a) && a.Code == sale.Busy.String() && a.Reason == string(sale.ReasonBreaker)
	})
	if !refused {
		t.Error("nobody was told BUSY, BREAKER")
	}
	was, is := percentile(calm, 99), percentile(rough, 99)
	t.Logf("buyers of other masters: p99 %v of %d calls before, %v of %d beside the slow one, bound %.1f ×", was, len(calm), is,
		len(rough), tailSlowdown)
	if float64(is) > tailSlowdown*float64(was)+float64(tailSlack) {
		t.Errorf("p99 of buyers whose master is well rose from %v to %v", was, is)
	}
	w.step("master %d is well again", victim+1)
	cluster.links[victim].Heal()
	healed := c.h.now()
	w.awaitBreaker(lane, sale.BreakerClosed, rest+5*time.Second)
	eventually(t, linkBound, "buyers of the healed master win", func() bool {
		return slices.ContainsFunc(c.h.all(), func(a attempt) bool { return a.call >= healed && !elsewhere(a) && a.won() })
	})
	w.step("the sale ends; audit")
	c.audit(settleBound)
}
