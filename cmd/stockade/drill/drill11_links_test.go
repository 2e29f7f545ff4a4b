//go:build services

package drill_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"stockade/cmd/stockade/proctest"
)

// linkBound is how long a sale may need to go on after a link has healed.
const linkBound = 10 * time.Second

// breakage is one trouble of one link in one direction.
type breakage struct {
	name    string
	link    *proctest.Link
	trouble proctest.Trouble
	way     proctest.Direction
}

// breakages are all combinations, in a random order.
func (w *world) breakages(rng *rand.Rand) (all []breakage) {
	for _, l := range []struct {
		name string
		link *proctest.Link
	}{{"Redis", w.toRedis}, {"MySQL", w.toMySQL}, {"RabbitMQ", w.toRabbit}} {
		for _, trouble := range proctest.Troubles {
			for _, way := range []proctest.Direction{proctest.Forth, proctest.Back} {
				all = append(all, breakage{l.name, l.link, trouble, way})
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Each link between nodes and servers is delayed, silent, cut, half-open and slow, in both directions, one after the other
// and then at random.
func TestDrill11LinksBreak(t *testing.T) {
	w := newWorld(t)
	w.step("two nodes, two SKUs, links to every server, %d buyers", buyers)
	w.start(2)
	plenty, little := w.create(1_000_000, 2, 8), w.create(500, 2, 8)
	c := w.open(plenty, little)
	c.topUp(plenty, little)
	c.awaitWins(50, 30*time.Second)
	seed := rand.Uint64()
	t.Logf("links: seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	all := w.breakages(rng)
	if !long() {
		all = all[:6]
	}
	for _, b := range all {
		if b.link == w.toRabbit {
			c.awaitCalm(span(500*time.Millisecond, 2*time.Second), linkBound) // what is BUSY then is RabbitMQ's doing
		}
		w.step("%s: %s, %s", b.name, b.trouble, b.way)
		b.link.Break(b.trouble, b.way)
		if b.link == w.toRabbit {
			c.sellsThrough(b.name, span(time.Second, 4*time.Second))
		} else {
			pass(span(time.Second, 4*time.Second))
		}
		b.link.Heal()
		c.awaitRecovery(b.name, c.h.now(), linkBound)
	}
	w.step("at random")
	for begun := time.Now(); time.Since(begun) < span(4*time.Second, time.Minute); {
		for _, b := range w.breakages(rng)[:2] {
			b.link.Heal()
			b.link.Break(b.trouble, b.way)
		}
		pass(time.Duration(rng.Int64N(int64(time.Second))))
		if rng.IntN(2) == 0 {
			w.heal()
			pass(time.Duration(rng.Int64N(int64(time.Second))))
		}
	}
	w.heal()
	c.awaitRecovery("every link", c.h.now(), linkBound)

	w.step("the sale ends; audit")
	c.audit(drainBound)
	c.wantTopUps()
}

func (w *world) heal() {
	for _, l := range []*proctest.Link{w.toRedis, w.toMySQL, w.toRabbit} {
		l.Heal()
	}
}
