//go:build services

package drill_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// Bounds of slowness.
const (
	memoryGrowth = 1.5                   // a node may hold this much more memory while it waits
	memorySlack  = 64 << 20              // bytes, beside it
	callBound    = 3 * time.Second       // of any answer: a purchase ends after 2 s, whatever is slow
	tailSlowdown = 1.5                   // p99 of buyers whose master runs, beside one that is suspended
	tailSlack    = 40 * time.Millisecond // beside it: this machine runs everything at once
	suspension   = time.Second           // of one Redis master
	slowRedis    = 80                    // ms a reply, more than a lane may wait
	slowMySQL    = 150                   // ms a reply
	masters      = 3
	onlyLane     = sale.BreakerLane + "redis" // without a cluster
)

// memory is how many bytes of a node are in memory.
func memory(t *testing.T, n *proctest.Node) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// MySQL answers slowly, as with a slow disk, then Redis does: bounds hold, memory stays flat, and the breaker of the lane keeps
// purchases away from the slow Redis until it is well.
func TestDrill10ServersAreSlow(t *testing.T) {
	w := newWorld(t)
	w.step("two nodes, two SKUs, %d buyers", buyers)
	w.govern(fmt.Sprintf("lanes: {slowMs: %d, slowPercent: 70, openMs: 500}\n", slowRedis*3/4))
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	c.awaitWins(300, 30*time.Second)
	for _, slow := range []struct {
		name string
		link *proctest.Link
		ms   int
	}{{"MySQL", w.toMySQL, slowMySQL}, {"Redis", w.toRedis, slowRedis}} {
		before := []int64{memory(t, w.node(0)), memory(t, w.node(1))}
		w.step("%s answers %d ms late", slow.name, slow.ms)
		began := c.h.now()
		slow.link.Slow(proctest.Back, slow.ms)
		pass(span(5*time.Second, time.Minute))
		for i := range 2 {
			after := memory(t, w.node(i))
			t.Logf("node %d: %d MiB, %d MiB before", i+1, after>>20, before[i]>>20)
			if float64(after) > memoryGrowth*float64(before[i])+memorySlack {
				t.Errorf("node %d grew from %d to %d bytes while %s was slow", i+1, before[i], after, slow.name)
			}
			lane := w.breakers(w.node(i))[onlyLane]
			t.Logf("node %d: %s is %s, %d changes, %d flushes refused", i+1, lane.Name, lane.State, lane.Changes, lane.Refused)
			if slow.link == w.toRedis && lane.Refused == 0 {
				t.Errorf("node %d: no flush was kept away from a slow Redis", i+1)
			}
		}
		slow.link.Heal()
		c.awaitRecovery(slow.name, c.h.now(), linkBound)
		w.awaitBreaker(onlyLane, sale.BreakerClosed, linkBound)
		all := c.h.times(began, func(attempt) bool { return true })
		t.Logf("%s slow: %d calls, p50 %v, p99 %v, slowest %v, bound %v", slow.name, len(all), percentile(all, 50),
			percentile(all, 99), percentile(all, 100), callBound)
		if percentile(all, 100) > callBound {
			t.Errorf("%s slow: an answer took %v, want at most %v", slow.name, percentile(all, 100), callBound)
		}
	}
	w.step("the sale ends; audit")
	c.audit(settleBound)
}

// One of three Redis masters is suspended for a second, several times: buyers whose slots are elsewhere do not notice.
func TestDrill10OneMasterIsSuspended(t *testing.T) {
	const slots = 16
	rounds := 5
	if long() {
		rounds = 20
	}
	w := newWorld(t)
	w.step("a Redis Cluster of %d masters, two nodes, %d buyers", masters, buyers)
	cluster := startCluster(t, w, masters)
	w.configure(cluster.addrs(), "shard.cluster: true")
	w.start(2)
	s := w.create(1_000_000, 2, slots)
	c := w.open(s)
	c.awaitWins(200, 30*time.Second)
	const victim = 1
	theirs := cluster.slotsOf(t, s, victim)
	t.Logf("master %d holds slots %v of %d", victim+1, theirs, slots)
	elsewhere := func(a attempt) bool { return !theirs[int(xxhash.Sum64String(a.buyer)%slots)] }
	var calm, rough []time.Duration
	for range rounds {
		began := c.h.now()
		pass(suspension)
		calm = append(calm, c.h.times(began, elsewhere)...)
		w.step("SIGSTOP of master %d for %v", victim+1, suspension)
		began = c.h.now()
		w.must(cluster.masters[victim].Suspend())
		pass(suspension)
		rough = append(rough, c.h.times(began, elsewhere)...)
		w.must(cluster.masters[victim].Resume())
		c.awaitRecovery("all masters", c.h.now(), linkBound)
		pass(suspension) // what waited is through
	}
	slices.Sort(calm)
	slices.Sort(rough)
	was, is := percentile(calm, 99), percentile(rough, 99)
	t.Logf("buyers of other masters: p99 %v of %d calls before, %v of %d beside the suspended one, bound %.1f ×", was, len(calm), is,
		len(rough), tailSlowdown)
	if float64(is) > tailSlowdown*float64(was)+float64(tailSlack) {
		t.Errorf("p99 of buyers whose master runs rose from %v to %v", was, is)
	}
	w.step("the sale ends; audit")
	c.audit(settleBound)
}
