package mq

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// redeclarePause keeps a stream of returned messages from declaring the topology for each.
const redeclarePause = time.Second

// errLateConfirm ends a session whose server took a message and then fell silent: the connection may be half-open.
var errLateConfirm = errors.New("a confirm did not come in time")

// session is one channel's life, all of it in one goroutine.
type session struct {
	p    *publisher
	line *line

	confirms chan amqp.Confirmation
	returns  chan amqp.Return
	blocks   chan amqp.Blocking
	closed   chan *amqp.Error

	pending  map[uint64]request // by delivery tag
	returned map[string]int     // by message id, until their confirms come
	blocked  bool
	declared time.Time
	delays   map[time.Duration]bool // delay queues that are there
}

// session opens a channel, publishes until something goes wrong, and gives every message its outcome.
func (p *publisher) session() error {
	s, err := p.openSession()
	if err != nil {
		return err
	}
	p.setOpen(true)
	err = s.serve()
	p.setOpen(false)
	p.link.drop(s.line)
	for _, r := range s.pending {
		if !r.givenUp() {
			p.finish(r, Unknown)
		}
	}
	return err
}

func (p *publisher) openSession() (*session, error) {
	ln, err := p.link.open(p.ctx)
	if err != nil {
		return nil, err
	}
	// Twice what is in flight: while the server blocks us, messages that were given up keep their place at the client.
	// A listener that is full would hold up the whole connection.
	room := 2 * p.cfg.MaxInFlight
	s := &session{
		p:        p,
		line:     ln,
		confirms: ln.NotifyPublish(make(chan amqp.Confirmation, room)),
		returns:  ln.NotifyReturn(make(chan amqp.Return, room)),
		blocks:   ln.conn.NotifyBlocked(make(chan amqp.Blocking, 16)),
		closed:   ln.NotifyClose(make(chan *amqp.Error, 1)),
		pending:  map[uint64]request{},
		returned: map[string]int{},
		delays:   map[time.Duration]bool{},
	}
	err = ln.within(func() error {
		if err := s.declare(); err != nil {
			return err
		}
		return ln.Confirm(false)
	})
	if err != nil {
		p.link.drop(ln)
		return nil, err
	}
	return s, nil
}

func (s *session) declare() error {
	s.declared = time.Now()
	clear(s.delays) // one of them may be what is gone
	return declare(s.line.Channel, s.p.cfg, serverMajor(s.line.conn))
}

func (s *session) serve() error {
	timeout := ms(s.p.cfg.ConfirmTimeoutMs)
	tick := time.NewTicker(timeout / 10)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-s.p.ctx.Done():
			return nil
		case r := <-s.p.queue:
			err = s.send(r)
		case c, open := <-s.confirms:
			if !open { // only after every confirm that came has been read
				return s.reason()
			}
			err = s.confirm(c)
		case b, open := <-s.blocks:
			s.block(b, open)
		case now := <-tick.C:
			err = s.expire(now.Add(-timeout))
		}
		if err != nil {
			return err
		}
	}
}

// declareDelay makes the delay queue of a message, once a session.
func (s *session) declareDelay(delay time.Duration) error {
	if delay == 0 || s.delays[delay] {
		return nil
	}
	s.delays[delay] = true
	return s.line.within(func() error {
		return declareQueue(s.line.Channel, delaySpec(s.p.cfg, delay), s.p.cfg.QueueType, serverMajor(s.line.conn))
	})
}

func (s *session) send(r request) error {
	m := r.msg
	if err := s.declareDelay(m.Delay); err != nil {
		s.p.finish(r, NotSent)
		return err
	}
	s.p.deps.Counters.published.Add(1)
	dc, err := s.line.PublishWithDeferredConfirm(m.Exchange, m.Key, m.Mandatory, false, amqp.Publishing{
		Headers:      headersTo(m.Headers),
		ContentType:  m.ContentType,
		DeliveryMode: amqp.Persistent,
		MessageId:    m.ID,
		Body:         m.Body,
	})
	if err != nil { // some of it may have reached the server
		s.p.finish(r, Unknown)
		return fmt.Errorf("publish: %w", err)
	}
	r.sent = time.Now()
	s.pending[dc.DeliveryTag] = r
	return nil
}

// confirm settles one message. Its return, if it had one, came before its confirm and waits in the buffer: only when
// the same goroutine reads both is none missed.
func (s *session) confirm(c amqp.Confirmation) error {
	s.readReturns()
	r, known := s.pending[c.DeliveryTag]
	delete(s.pending, c.DeliveryTag)
	switch wasReturned := s.takeReturn(r.msg.ID); {
	case !known || r.givenUp():
	case wasReturned:
		s.p.finish(r, Returned)
		if time.Since(s.declared) >= redeclarePause {
			return s.line.within(s.declare) // its queue is gone: bring it back
		}
	case c.Ack:
		s.p.finish(r, Confirmed)
	default:
		s.p.finish(r, Rejected)
	}
	return nil
}

func (s *session) readReturns() {
	for {
		select {
		case ret, open := <-s.returns:
			if !open {
				return
			}
			s.returned[ret.MessageId]++
		default:
			return
		}
	}
}

func (s *session) takeReturn(id string) bool {
	n := s.returned[id]
	if n > 1 {
		s.returned[id] = n - 1
	} else {
		delete(s.returned, id)
	}
	return n > 0
}

// block shuts the publisher while the server is short of memory or disk: it would read nothing, and a publish would
// hang in the socket.
func (s *session) block(b amqp.Blocking, open bool) {
	if !open {
		s.blocks = nil
		return
	}
	if b.Active != s.blocked {
		s.blocked = b.Active
		for tag, r := range s.pending { // what waited is given its whole time again
			r.sent = time.Now()
			s.pending[tag] = r
		}
		if b.Active {
			s.p.deps.Log.Warn("relay: the broker blocks publishers", "reason", b.Reason)
		} else {
			s.p.deps.Log.Info("relay: the broker takes messages again")
		}
		s.p.setOpen(!b.Active)
	}
}

// expire gives up messages sent before the deadline. A server that said that it blocks is late for that reason;
// otherwise the connection is not to be trusted any more.
func (s *session) expire(deadline time.Time) error {
	for tag, r := range s.pending {
		switch {
		case !r.sent.Before(deadline):
		case !s.blocked:
			return errLateConfirm
		case !r.givenUp():
			s.p.finish(r, Unknown)
			r.done = nil
			s.pending[tag] = r // its confirm, and its return, may still come
		}
	}
	return nil
}

func (s *session) reason() error {
	select {
	case err := <-s.closed:
		if err != nil {
			return err
		}
	default:
	}
	return amqp.ErrClosed
}
