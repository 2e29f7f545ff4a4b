package shard

import (
	"context"
	"sync"
	"time"

	"stockade/biz/sale"
)

// laterTimeout bounds one try to settle what nobody waits for, its time in a lane's queue included.
const laterTimeout = 2 * time.Second

// laterQueue settles what nobody waits for, in the order it came. One goroutine, ended by close.
type laterQueue struct {
	settle func(ctx context.Context, s ...sale.Settlement) error
	queue  chan sale.Settlement
	mu     sync.RWMutex // guards closed against senders on queue
	closed bool
	done   chan struct{}
}

func newLaterQueue(size int, settle func(context.Context, ...sale.Settlement) error) *laterQueue {
	q := &laterQueue{settle: settle, queue: make(chan sale.Settlement, size), done: make(chan struct{})}
	go q.work()
	return q
}

// offer queues a settlement, or drops it when the queue is full or closed.
func (q *laterQueue) offer(s sale.Settlement) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return
	}
	select {
	case q.queue <- s:
	default:
	}
}

// close settles what waits, unless Redis does not answer any more.
func (q *laterQueue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.queue)
	}
	q.mu.Unlock()
	<-q.done
}

func (q *laterQueue) closing() bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.closed
}

func (q *laterQueue) work() {
	defer close(q.done)
	group := make([]sale.Settlement, 0, settleCall)
	for first := range q.queue {
		group = q.gather(append(group[:0], first))
		ctx, cancel := context.WithTimeout(context.Background(), laterTimeout)
		err := q.settle(ctx, group...)
		cancel()
		if err != nil && q.closing() {
			return // stopping must not wait for a Redis that is gone; the journal sweeper knows these takes
		}
	}
}

// gather adds what waits already.
func (q *laterQueue) gather(group []sale.Settlement) []sale.Settlement {
	for len(group) < settleCall {
		select {
		case s, open := <-q.queue:
			if !open {
				return group
			}
			group = append(group, s)
		default:
			return group
		}
	}
	return group
}
