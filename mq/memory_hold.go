package mq

import "time"

// heldMessage waits in a queue with a lifetime.
type heldMessage struct {
	msg Message
	due <-chan time.Time
}

// hold starts the lifetime of a message. All messages of a queue live equally long, so the oldest one is due first and
// one goroutine a queue is enough. It ends when nothing is held any more, or with the broker.
func (m *Memory) hold(q *memoryQueue, msg Message) {
	q.held = append(q.held, heldMessage{msg, m.after(q.lifetime)})
	if !q.moving {
		q.moving = true
		m.movings.Go(func() { m.moveOn(q) })
	}
}

// moveOn brings each message of a queue to the next one when its lifetime ends.
func (m *Memory) moveOn(q *memoryQueue) {
	for {
		due, more := m.oldest(q)
		if !more {
			return
		}
		select {
		case <-due:
		case <-m.done:
			return
		}
		for !m.moveOldest(q) { // the next queue is full: nothing that was confirmed is dropped
			select {
			case <-m.after(ms(m.cfg.PauseMinMs)):
			case <-m.done:
				return
			}
		}
	}
}

func (m *Memory) oldest(q *memoryQueue) (due <-chan time.Time, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(q.held) == 0 {
		q.held, q.moving = nil, false
		return nil, false
	}
	return q.held[0].due, true
}

func (m *Memory) moveOldest(q *memoryQueue) (moved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(q.held) == 0 { // the queue was deleted meanwhile
		return true
	}
	m.declare()
	msg := q.held[0].msg
	msg.Exchange, msg.Key, msg.Delay = q.thenExchange, q.thenKey, 0
	if m.deliver(msg, m.targets(msg)) != Confirmed {
		return false
	}
	q.held[0] = heldMessage{}
	q.held = q.held[1:]
	return true
}
