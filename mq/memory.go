package mq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory is a Broker inside the process. It keeps the contract as long as the process lives, and forgets everything
// with it.
type Memory struct {
	cfg      Config
	names    Names
	counters *Counters
	after    func(time.Duration) <-chan time.Time

	done    chan struct{} // closed with the broker
	movings sync.WaitGroup

	mu     sync.Mutex
	closed bool
	queues map[string]*memoryQueue
	routes []memoryRoute
}

type memoryRoute struct{ exchange, key, queue string }

// anyKey in a route takes every message of its exchange.
const anyKey = "#"

type memoryQueue struct {
	queueSpec
	ready []Delivery
	subs  []*memorySubscription

	// Of a queue with a lifetime, whose messages never become ready here:
	held   []heldMessage // oldest first
	moving bool          // somebody waits for the oldest one to become due
}

// NewMemory returns an empty broker with the topology of cfg declared.
func NewMemory(cfg Config, deps Deps) *Memory {
	deps = deps.withDefaults()
	m := &Memory{
		cfg:      cfg,
		names:    NamesFor(cfg.Prefix),
		counters: deps.Counters,
		after:    deps.After,
		done:     make(chan struct{}),
		queues:   map[string]*memoryQueue{},
	}
	m.declare()
	return m
}

// Publish implements Broker. The outcome is known before it returns.
func (m *Memory) Publish(_ context.Context, msg Message, done func(Outcome)) {
	outcome := m.route(msg)
	if outcome != NotSent {
		m.counters.published.Add(1)
	}
	m.counters.count(outcome)
	done(outcome)
}

func (m *Memory) route(msg Message) Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return NotSent
	}
	if msg.Delay > 0 {
		m.bind(delaySpec(m.cfg, msg.Delay))
	}
	targets := m.targets(msg)
	if len(targets) == 0 {
		if !msg.Mandatory {
			return Confirmed
		}
		m.declare() // as the other broker does: the next publishing finds its queue
		return Returned
	}
	return m.deliver(msg, targets)
}

// deliver brings a message into all these queues or into none.
func (m *Memory) deliver(msg Message, targets []*memoryQueue) Outcome {
	for _, q := range targets {
		if len(q.ready)+len(q.held) >= q.maxMessages {
			return Rejected
		}
	}
	for _, q := range targets {
		if q.lifetime > 0 {
			m.hold(q, msg)
			continue
		}
		q.ready = append(q.ready, Delivery{Message: msg})
		q.dispatch()
	}
	return Confirmed
}

func (m *Memory) targets(msg Message) []*memoryQueue {
	var found []*memoryQueue
	for _, r := range m.routes {
		if r.exchange == msg.Exchange && (r.key == anyKey || r.key == msg.Key) {
			found = append(found, m.queues[r.queue])
		}
	}
	return found
}

// Ready implements Broker.
func (m *Memory) Ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.closed
}

// Subscribe implements Broker.
func (m *Memory) Subscribe(_ context.Context, queue string, prefetch int) (Subscription, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrLost
	}
	m.declare()
	q := m.queues[queue]
	if q == nil {
		return nil, fmt.Errorf("subscribe: no queue %s", queue)
	}
	s := &memorySubscription{broker: m, queue: q, out: make(chan Delivery, prefetch)}
	q.subs = append(q.subs, s)
	q.dispatch()
	return s, nil
}

// Close implements Broker.
func (m *Memory) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.done)
	}
	for _, q := range m.queues {
		q.endAll()
	}
	m.mu.Unlock()
	m.movings.Wait()
	return nil
}

// Bind makes a queue, without consumers yet, that takes the messages of an exchange under one key, or "#" for all.
func (m *Memory) Bind(queue, exchange, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bindKey(queueSpec{name: queue, exchange: exchange, maxMessages: m.cfg.QueueMaxMessages}, key)
}

// DeleteQueue drops a queue with all that is in it and ends its subscriptions.
func (m *Memory) DeleteQueue(queue string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.queues[queue]; q != nil {
		q.endAll()
		q.held = nil
	}
	delete(m.queues, queue)
	m.routes = slices.DeleteFunc(m.routes, func(r memoryRoute) bool { return r.queue == queue })
}

func (m *Memory) declare() {
	for _, q := range queueSpecs(m.cfg) {
		m.bind(q)
	}
}

func (m *Memory) bind(q queueSpec) { m.bindKey(q, q.name) }

func (m *Memory) bindKey(q queueSpec, key string) {
	if m.queues[q.name] == nil {
		m.queues[q.name] = &memoryQueue{queueSpec: q}
	}
	if route := (memoryRoute{q.exchange, key, q.name}); !slices.Contains(m.routes, route) {
		m.routes = append(m.routes, route)
	}
}

// dispatch hands waiting messages to the subscriptions that have room, the emptiest one first.
func (q *memoryQueue) dispatch() {
	for len(q.ready) > 0 {
		var to *memorySubscription
		for _, s := range q.subs {
			if len(s.unacked) < cap(s.out) && (to == nil || len(s.unacked) < len(to.unacked)) {
				to = s
			}
		}
		if to == nil {
			return
		}
		d := q.ready[0]
		q.ready[0] = Delivery{}
		q.ready = q.ready[1:]
		to.take(d)
	}
	q.ready = nil // lets go of the array behind it
}

func (q *memoryQueue) endAll() {
	for len(q.subs) > 0 {
		q.subs[0].end()
	}
}

type memorySubscription struct {
	broker *Memory
	queue  *memoryQueue
	out    chan Delivery // never full: it holds no more than unacked does

	// Guarded by broker.mu.
	unacked []Delivery // in the order of their tags
	lastTag uint64
	ended   bool
}

func (s *memorySubscription) take(d Delivery) {
	s.lastTag++
	d.tag = s.lastTag
	s.unacked = append(s.unacked, d)
	s.out <- d
}

// Deliveries implements Subscription.
func (s *memorySubscription) Deliveries() <-chan Delivery { return s.out }

// Ack implements Subscription.
func (s *memorySubscription) Ack(ds ...Delivery) error { return s.release(ds, false) }

// Requeue implements Subscription.
func (s *memorySubscription) Requeue(ds ...Delivery) error { return s.release(ds, true) }

func (s *memorySubscription) release(ds []Delivery, requeue bool) error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.ended {
		return ErrLost
	}
	var released []Delivery
	for _, d := range ds {
		if i := slices.IndexFunc(s.unacked, func(u Delivery) bool { return u.tag == d.tag }); i >= 0 {
			released = append(released, s.unacked[i])
			s.unacked = slices.Delete(s.unacked, i, i+1)
		}
	}
	if requeue {
		s.giveBack(released)
	}
	s.queue.dispatch()
	return nil
}

// giveBack puts deliveries at the head of the queue, where they came from. It may exceed the queue's limit, which
// turns new messages away, never old ones.
func (s *memorySubscription) giveBack(ds []Delivery) {
	for i := range ds {
		ds[i].Redelivered = true
	}
	s.queue.ready = slices.Concat(ds, s.queue.ready)
}

// Close implements Subscription.
func (s *memorySubscription) Close() {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	s.end()
}

func (s *memorySubscription) end() {
	if s.ended {
		return
	}
	s.ended = true
	close(s.out)
	s.queue.subs = slices.DeleteFunc(s.queue.subs, func(o *memorySubscription) bool { return o == s })
	s.giveBack(s.unacked)
	s.unacked = nil
	s.queue.dispatch()
}
