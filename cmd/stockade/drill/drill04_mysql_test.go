//go:build services

package drill_test

import (
	"testing"
	"time"

	"stockade/biz/sale"
)

// sellWithMySQL starts a sale whose database may be broken.
func sellWithMySQL(t *testing.T) (*world, *crowd) {
	w := newWorld(t)
	w.pace = 2 * usualPace
	w.step("two nodes, two SKUs, %d buyers", buyers)
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(1_000_000, 2, 8))
	c.awaitWins(50, 30*time.Second)
	t.Cleanup(func() { // whatever happens, the next drill finds a database
		if !house.mysql.Alive() {
			w.ok(house.mysql.Start())
		}
	})
	return w, c
}

// MySQL is stopped, and killed. Its commits are flushed to the disk, so nothing may be missing.
func TestDrill04MySQLIsAwayUnderOutbox(t *testing.T) {
	w, c := sellWithMySQL(t)
	w.step("MySQL is stopped")
	w.must(house.mysql.StopWell())
	c.isBusy("stopped", span(4*time.Second, 20*time.Second))
	w.must(house.mysql.Start())
	c.awaitRecovery("MySQL, stopped and started,", c.h.now(), linkBound)
	c.awaitDrained("MySQL, stopped and started,")

	w.step("MySQL is killed")
	c.awaitWins(50, 30*time.Second)
	house.mysql.Kill()
	c.isBusy("killed", span(time.Second, 10*time.Second))
	w.must(house.mysql.Start())
	c.awaitRecovery("MySQL, killed and started,", c.h.now(), linkBound)
	c.awaitDrained("MySQL, killed and started,")

	w.step("the sale ends; audit")
	c.audit(drainBound)
}

// MySQL is stopped while purchases are accepted before it has them. It gets them all when it is back.
func TestDrill04MySQLIsAwayUnderJournal(t *testing.T) {
	w, c := sellWithMySQL(t)
	w.toggle(sale.ToggleDurability, sale.DurabilityJournal)
	c.awaitWins(50, 30*time.Second)
	w.step("MySQL is stopped")
	w.must(house.mysql.StopWell())
	c.sellsThrough("stopped under journal", span(4*time.Second, 20*time.Second))
	w.must(house.mysql.Start())
	mended := time.Now()
	c.awaitRecovery("MySQL, stopped and started under journal,", c.h.now(), linkBound)
	c.awaitCarried("MySQL, stopped and started under journal,", mended)
	w.toggle(sale.ToggleDurability, sale.DurabilityOutbox)
	c.awaitWins(50, 30*time.Second)

	w.step("the sale ends; audit")
	c.audit(drainBound)
}

// isBusy lets time go by in which nobody can be told ACCEPTED anew, and everybody is told BUSY.
func (c *crowd) isBusy(what string, d time.Duration) {
	c.w.t.Helper()
	busy, began := c.h.count(sale.Busy.String()), c.h.now()
	pass(d)
	busy = c.h.count(sale.Busy.String()) - busy
	if after, won := c.h.firstWin(began); won {
		c.w.t.Errorf("%s: a purchase was accepted after %v without MySQL", what, after)
	}
	if busy == 0 {
		c.w.t.Errorf("%s: nobody was told BUSY", what)
	}
	c.w.t.Logf("%s: nobody accepted for %v, %d times BUSY", what, d, busy)
}

// awaitCarried waits until what was accepted before MySQL was well is written, as orders of their buyers.
func (c *crowd) awaitCarried(what string, mended time.Time) {
	c.w.t.Helper()
	told := map[string]bool{}
	for _, a := range c.h.all() {
		if a.won() {
			told[a.OrderID] = true
		}
	}
	var missing int
	seldom(c.w.t, 3*drainBound, what+": accepted orders are in MySQL", func() bool {
		missing = len(told)
		for _, s := range c.w.skus {
			tr, err := c.w.truth(s)
			if err != nil {
				return false
			}
			for id, r := range tr.rows {
				if told[id] && r.state != sale.OrderQueued {
					missing--
				}
			}
		}
		return missing == 0
	})
	took := time.Since(mended)
	c.w.t.Logf("%s: %d accepted orders written %v after it was well again, bound %v", what, len(told),
		took.Round(time.Millisecond), drainBound)
	if took > drainBound {
		c.w.t.Errorf("%s: accepted orders written %v after it was well again, want at most %v", what, took, drainBound)
	}
}
