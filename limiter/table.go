package limiter

import (
	"math/bits"
	"sync"
)

// ways is the number of buckets in a group. With lock and floor a group is then 256 bytes, four cache lines.
const ways = 15

// spare is how many buckets the table has for each one it is asked to track. At half load, a group of 15 overflows in
// fewer than 1 of 100 cases, so that evictions are rare while the table holds what it promised.
const spare = 2

// table keeps the buckets of many keys in fixed memory. It never forgets in anyone's favour: a key that comes back is
// given a bucket at most as full as its own would be by now.
//
// A key belongs to one group. A bucket that is full again (TAT in the past) says nothing and is free for the next key.
// When none is free, the one that is nearest to full goes, and the group's floor remembers its TAT: a key that the group
// does not know may be any of those evicted, so it starts at the floor, the highest TAT among them. Time passes the
// floor as it passes every TAT, so no sweep is needed.
type table struct {
	quota  quota
	groups []group
}

type group struct {
	mu      sync.Mutex
	floor   int64 // highest TAT that was evicted
	buckets [ways]bucket
}

// bucket is one key's state. A free bucket keeps the key it had, which does no harm: that key's bucket is full.
type bucket struct {
	key uint64 // seeded hash of the address or the buyer
	tat int64
}

func newTable(q quota, tracked int) *table {
	return &table{quota: q, groups: make([]group, (tracked*spare+ways-1)/ways)}
}

// take asks the key's bucket for one token.
func (t *table) take(key uint64, now int64) Verdict {
	g := t.groupOf(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	lowest := 0
	for i := range g.buckets {
		if g.buckets[i].key == key {
			var v Verdict
			g.buckets[i].tat, v = t.quota.take(g.buckets[i].tat, now)
			return v
		}
		if g.buckets[i].tat < g.buckets[lowest].tat {
			lowest = i
		}
	}
	tat, v := t.quota.take(g.floor, now)
	if v.OK { // a refused newcomer needs no bucket: the floor refuses it again
		g.evict(lowest, now)
		g.buckets[lowest] = bucket{key, tat}
	}
	return v
}

// evict makes room at i. The floor rises only for a bucket that time has not filled.
func (g *group) evict(i int, now int64) {
	if tat := g.buckets[i].tat; tat > now {
		g.floor = max(g.floor, tat)
	}
}

// groupOf spreads keys evenly over any number of groups by the high word of a product.
func (t *table) groupOf(key uint64) *group {
	i, _ := bits.Mul64(key, uint64(len(t.groups)))
	return &t.groups[i]
}
