//go:build services

package drill_test

import (
	"time"

	"stockade/biz/sale"
)

// drainBound is how long orders may stay QUEUED after RabbitMQ is well again. The design gives 120 s when RabbitMQ lost what
// it had confirmed; sweepers look much earlier here, and so the bound is half of that.
const drainBound = 60 * time.Second

// fewBusy purchases may be BUSY for other reasons, however short an outage is.
const fewBusy = 5

// awaitCalm waits for a time in which nobody is BUSY: calls that hung in the trouble before have come to their end, and
// breakers that they opened are closed. No total changes by hand meanwhile.
func (c *crowd) awaitCalm(calm, bound time.Duration) {
	c.w.t.Helper()
	c.hand.Lock()
	defer c.hand.Unlock()
	eventually(c.w.t, bound, "nobody is BUSY any more", func() bool {
		busy := c.h.count(sale.Busy.String())
		pass(calm)
		return c.h.count(sale.Busy.String()) == busy
	})
}

// sellsThrough lets time go by in which purchases must go on as if nothing were wrong. No total changes by hand meanwhile:
// buyers may notice that.
func (c *crowd) sellsThrough(what string, d time.Duration) {
	c.w.t.Helper()
	c.hand.Lock()
	defer c.hand.Unlock()
	wins, busy := c.h.wins(), c.h.count(sale.Busy.String())
	pass(d)
	c.awaitWins(20, 10*time.Second)
	wins, busy = c.h.wins()-wins, c.h.count(sale.Busy.String())-busy
	c.w.t.Logf("%s: %d purchases accepted, %d BUSY", what, wins, busy)
	if busy > fewBusy+wins/5 { // a busy machine gives a few anyway; without purchases nearly all would be
		c.w.t.Errorf("%s: %d purchases were BUSY beside %d accepted; buyers should not notice", what, busy, wins)
	}
}

// awaitDrained waits until no order is QUEUED that was accepted before a moment.
func (c *crowd) awaitDrained(what string) {
	c.w.t.Helper()
	mended := time.Now()
	took := seldom(c.w.t, 2*drainBound, what+": orders of before are written", func() bool {
		var queued int
		err := c.w.db.QueryRow(`SELECT COUNT(*) FROM outbox o LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
			WHERE o.state IN (0, 1) AND r.id IS NULL AND o.created_at < ?`, mended.UnixMilli()).Scan(&queued)
		return err == nil && queued == 0
	})
	c.w.t.Logf("%s: drained %v after it was well again, bound %v", what, took.Round(time.Millisecond), drainBound)
	if took > drainBound {
		c.w.t.Errorf("%s: drained %v after it was well again, want at most %v", what, took, drainBound)
	}
}
