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
// A key belongs to one group. For a new key the group's bucket with the lowest TAT goes: one that is full again says
// nothing and is no loss, and when none is full it is the one nearest to it. The floor remembers its TAT. All that stay
// are at or above the floor and newcomers start there, so the floor never falls and is the highest TAT of all that went:
// whoever a newcomer may have been before, it does not gain. Time passes the floor as it passes every TAT, so no sweep
// is needed.
type table struct {
	groups []group
}

type group struct {
	mu      sync.Mutex
	floor   int64 // TAT of the bucket that went last, the highest of all that went
	buckets [ways]bucket
}

// bucket is one key's state. One that was never used stands for key 0 with a full bucket, which is true for any key.
type bucket struct {
	key uint64 // seeded hash of the address or the buyer
	tat int64
}

func newTable(tracked int) *table {
	return &table{groups: make([]group, (tracked*spare+ways-1)/ways)}
}

// take asks the key's bucket for one token.
func (t *table) take(q *quota, key uint64, now int64) Verdict {
	g := t.groupOf(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	lowest := 0
	for i := range g.buckets {
		if g.buckets[i].key == key {
			var v Verdict
			g.buckets[i].tat, v = q.take(g.buckets[i].tat, now)
			return v
		}
		if g.buckets[i].tat < g.buckets[lowest].tat {
			lowest = i
		}
	}
	tat, v := q.take(g.floor, now)
	if v.OK { // a refused newcomer needs no bucket: the floor refuses it again
		g.floor = g.buckets[lowest].tat
		g.buckets[lowest] = bucket{key, tat}
	}
	return v
}

// groupOf spreads keys evenly over any number of groups by the high word of a product.
func (t *table) groupOf(key uint64) *group {
	i, _ := bits.Mul64(key, uint64(len(t.groups)))
	return &t.groups[i]
}
