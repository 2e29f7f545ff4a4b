//go:build services && soak

package drill_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"stockade/cmd/stockade/proctest"
)

// How long things stay broken.
const (
	shortestFault = 200 * time.Millisecond
	longestFault  = 3 * time.Second
	maxBroken     = 3 // things at a time: the sale is to go on in between
)

// monkey breaks one thing after the other, at random, and mends each some time later. It works on the goroutine of the
// test alone.
type monkey struct {
	w       *world
	rng     *rand.Rand
	began   time.Time
	count   map[string]int     // by name
	repairs map[string]*repair // by what is broken
}

// repair is what ends a fault.
type repair struct {
	due  time.Time
	mend func() (done bool) // false: not yet, ask again
}

// fault is one way to break a thing; mend is asked when its time has come.
type fault struct {
	name, target string
	strike       func() (mend func() bool)
}

func newMonkey(w *world, seed uint64) *monkey {
	return &monkey{
		w: w, rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now(), count: map[string]int{}, repairs: map[string]*repair{},
	}
}

func (m *monkey) total() (n int) {
	for _, c := range m.count {
		n += c
	}
	return n
}

// broken lists what is broken now.
func (m *monkey) broken() []string { return slices.Sorted(maps.Keys(m.repairs)) }

// due is when the next fault is. One that could not be in time is made up for.
func (m *monkey) due() time.Time { return m.began.Add(time.Duration(m.total()) * faultEvery) }

// next is when something has to be looked at again.
func (m *monkey) next() time.Time {
	at := time.Now().Add(faultEvery)
	if len(m.repairs) < maxBroken {
		at = m.due()
	}
	for _, r := range m.repairs {
		if r.due.Before(at) {
			at = r.due
		}
	}
	return at
}

// mendDue mends what has been broken for long enough.
func (m *monkey) mendDue(now time.Time) {
	for _, target := range m.broken() {
		r := m.repairs[target]
		if now.Before(r.due) {
			continue
		}
		if r.mend() {
			delete(m.repairs, target)
			continue
		}
		r.due = now.Add(retryPause)
	}
}

// mendAll mends everything and waits until all servers answer and all nodes serve.
func (m *monkey) mendAll() {
	m.w.t.Helper()
	for _, r := range m.repairs {
		r.due = time.Time{}
	}
	eventually(m.w.t, 2*time.Minute, "everything is mended", func() bool {
		m.mendDue(time.Now())
		return len(m.repairs) == 0
	})
}

// breakSomething breaks something that is well, if a fault is due.
func (m *monkey) breakSomething(now time.Time) {
	if now.Before(m.due()) || len(m.repairs) >= maxBroken {
		return
	}
	all := m.faults()
	for _, i := range m.rng.Perm(len(all)) {
		f := all[i]
		if m.repairs[f.target] != nil {
			continue
		}
		mend := f.strike()
		after := shortestFault + time.Duration(m.rng.Int64N(int64(longestFault-shortestFault)))
		m.repairs[f.target] = &repair{due: time.Now().Add(after), mend: mend}
		m.count[f.name]++
		return
	}
}

// faults are all ways to break things.
func (m *monkey) faults() (all []fault) {
	w := m.w
	for i := range 2 {
		target := fmt.Sprintf("node %d", i+1)
		all = append(all,
			fault{"kill node", target, func() func() bool { return m.killNode(i) }},
			fault{"pause node", target, func() func() bool { return m.pause(w.node(i).Process) }})
	}
	for _, s := range []struct {
		name   string
		server *proctest.Server
		link   *proctest.Link
	}{
		{"Redis", w.redis, w.toRedis},
		{"MySQL", house.mysql, w.toMySQL},
		{"RabbitMQ", house.rabbit.Server, w.toRabbit},
	} {
		all = append(all,
			fault{"kill " + s.name, s.name, func() func() bool { return m.killServer(s.server) }},
			fault{"pause " + s.name, s.name, func() func() bool { return m.pause(s.server.Process) }},
			fault{"break link to " + s.name, "link to " + s.name, func() func() bool { return m.breakLink(s.link) }})
	}
	return all
}

// killNode kills a node. Another one takes its place, and is in use as soon as it serves.
func (m *monkey) killNode(i int) func() bool {
	m.w.node(i).Kill()
	var fresh *proctest.Node
	return func() bool {
		if fresh == nil || !fresh.Alive() { // without MySQL it cannot start
			fresh = m.w.launch()
			return false
		}
		if !fresh.Serves() {
			return false
		}
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.w.nodes[i] = fresh
		return true
	}
}

// killServer kills a server. It is started again and counts as broken until it answers.
func (m *monkey) killServer(s *proctest.Server) func() bool {
	s.Kill()
	started := false
	return func() bool {
		if !started {
			m.w.must(s.Launch())
			started = true
			return false
		}
		return s.Answers()
	}
}

func (m *monkey) pause(p *proctest.Process) func() bool {
	m.w.ok(p.Suspend())
	return func() bool {
		m.w.ok(p.Resume())
		return true
	}
}

func (m *monkey) breakLink(l *proctest.Link) func() bool {
	trouble := proctest.Troubles[m.rng.IntN(len(proctest.Troubles))]
	way := []proctest.Direction{proctest.Forth, proctest.Back}[m.rng.IntN(2)]
	l.Break(trouble, way)
	return func() bool {
		l.Heal()
		return true
	}
}
