package mq

import (
	"sync"

	"stockade/biz/sale"
)

// ring is the relay's bounded queue of orders. Putting never waits.
type ring struct {
	ready chan struct{} // holds a token while orders wait

	mu    sync.Mutex
	slots []sale.Order
	head  int // position of the oldest order
	count int
}

func newRing(limit int) *ring {
	return &ring{ready: make(chan struct{}, 1), slots: make([]sale.Order, limit)}
}

// put adds orders from the front of the slice until the ring is full, and returns how many were left out.
func (r *ring) put(orders []sale.Order) (left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(orders), len(r.slots)-r.count)
	for i := range n {
		r.slots[(r.head+r.count)%len(r.slots)] = orders[i]
		r.count++
	}
	r.signal()
	return len(orders) - n
}

// take removes the oldest orders, at most limit.
func (r *ring) take(limit int) []sale.Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(limit, r.count)
	out := make([]sale.Order, n)
	for i := range n {
		out[i] = r.slots[r.head]
		r.slots[r.head] = sale.Order{} // lets go of its strings
		r.head = (r.head + 1) % len(r.slots)
	}
	r.count -= n
	r.signal()
	return out
}

// behind tells whether the ring is more than half full.
func (r *ring) behind() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count > len(r.slots)/2
}

// signal leaves a token in ready while orders wait, so that a taker who took only some of them comes again.
func (r *ring) signal() {
	if r.count > 0 {
		select {
		case r.ready <- struct{}{}:
		default:
		}
	}
}
