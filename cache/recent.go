package cache

import (
	"sync"

	"stockade/biz/sale"
)

// recentShards keeps goroutines apart that look at different orders.
const recentShards = 16

// Recent remembers the orders that this node sold last, so that a winner's retry is not counted against the buyer's
// rate. When it is full the oldest order goes.
type Recent struct {
	seats  int // of each shard
	shards [recentShards]recentShard
}

// recentShard is a ring of orders and an index to it.
type recentShard struct {
	mu   sync.Mutex
	held map[sale.OrderID]struct{}
	ring []sale.OrderID
	next int      // seat of the oldest, once the ring is full
	_    [64]byte // keeps the locks of two shards off one cache line
}

// NewRecent returns an empty memory. The error is the one of Config.Validate.
func NewRecent(cfg Config) (*Recent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Recent{seats: (cfg.MaxRecent + recentShards - 1) / recentShards}
	for i := range r.shards {
		r.shards[i].held = map[sale.OrderID]struct{}{}
	}
	return r, nil
}

// Add remembers an order. Adding it again does not make it younger.
func (r *Recent) Add(id sale.OrderID) {
	s := r.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[id]; ok {
		return
	}
	if len(s.ring) < r.seats {
		s.ring = append(s.ring, id)
	} else {
		delete(s.held, s.ring[s.next])
		s.ring[s.next] = id
		s.next = (s.next + 1) % r.seats
	}
	s.held[id] = struct{}{}
}

// Has tells whether the order is among those remembered.
func (r *Recent) Has(id sale.OrderID) bool {
	s := r.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[id]
	return ok
}

// shardOf goes by the last byte, which is random in every kind of order id.
func (r *Recent) shardOf(id sale.OrderID) *recentShard { return &r.shards[id[len(id)-1]%recentShards] }
