package service

import (
	"sync"
	"sync/atomic"
	"time"

	"stockade/biz/sale"
)

// carrier promises acknowledged takes in the background, in groups, in the order they came. One goroutine, ended by
// close. While MySQL is away its queue fills and it lets go of what comes: the journal keeps every such take.
type carrier struct {
	queue   chan sale.Take
	waiting atomic.Int64 // takes that are queued or being promised
	group   int
	promise func([]sale.Take) (done bool)
	mu      sync.RWMutex // guards closed against senders on queue
	closed  bool
	closing chan struct{}
	done    chan struct{}
}

func newCarrier(queue, group int, promise func([]sale.Take) bool) *carrier {
	c := &carrier{
		queue: make(chan sale.Take, queue), group: group, promise: promise,
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	go c.work()
	return c
}

// offer queues a take, or drops it when the queue is full or closed.
func (c *carrier) offer(t sale.Take) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return
	}
	c.waiting.Add(1)
	select {
	case c.queue <- t:
	default:
		c.waiting.Add(-1)
	}
}

// close promises what waits, unless MySQL does not answer.
func (c *carrier) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.queue)
		close(c.closing)
	}
	c.mu.Unlock()
	<-c.done
}

func (c *carrier) work() {
	defer close(c.done)
	takes := make([]sale.Take, 0, c.group)
	for first := range c.queue {
		takes = c.gather(append(takes[:0], first))
		done := c.promise(takes)
		c.waiting.Add(-int64(len(takes)))
		if done {
			continue
		}
		select {
		case <-c.closing:
			return
		case <-time.After(carryPause):
		}
	}
}

// gather adds what waits already.
func (c *carrier) gather(takes []sale.Take) []sale.Take {
	for len(takes) < c.group {
		select {
		case t, open := <-c.queue:
			if !open {
				return takes
			}
			takes = append(takes, t)
		default:
			return takes
		}
	}
	return takes
}
