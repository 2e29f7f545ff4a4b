package mq

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// newTestSession is a session without a server, for what it decides by itself.
func newTestSession() *session {
	p := &publisher{
		cfg:   DefaultConfig(),
		deps:  Deps{}.withDefaults(),
		slots: make(chan struct{}, 10),
		queue: make(chan request, 10),
		open:  true,
	}
	return &session{
		p: p, returns: make(chan amqp.Return, 10),
		pending: map[uint64]request{}, returned: map[string]int{}, declared: time.Now(),
	}
}

// inFlight puts a message in flight, sent long ago, and returns where its outcome goes.
func (s *session) inFlight(tag uint64, id string) *Outcome {
	o := new(Outcome)
	s.p.slots <- struct{}{}
	s.pending[tag] = request{msg: Message{ID: id}, done: func(got Outcome) { *o = got }}
	return o
}

func TestBlockedServerShutsThePublisher(t *testing.T) {
	s := newTestSession()
	first := s.inFlight(1, "a")
	var waiting Outcome
	s.p.publish(t.Context(), Message{}, func(o Outcome) { waiting = o })
	s.block(amqp.Blocking{Active: true}, true)
	if waiting != NotSent || s.p.isOpen() {
		t.Fatalf("blocked: outcome %v, open %v", waiting, s.p.isOpen())
	}
	var refused Outcome
	s.p.publish(t.Context(), Message{}, func(o Outcome) { refused = o })
	if refused != NotSent {
		t.Fatalf("published while blocked: %v", refused)
	}

	if err := s.expire(time.Now().Add(time.Hour)); err != nil || *first != Unknown {
		t.Fatalf("late while blocked: %v, outcome %v", err, *first)
	}
	if len(s.p.slots) != 0 {
		t.Fatalf("%d slots held without a message in flight", len(s.p.slots))
	}
	s.block(amqp.Blocking{Active: false}, true)
	if !s.p.isOpen() {
		t.Fatal("shut after the server stopped blocking")
	}
	*first = 0
	if err := s.confirm(amqp.Confirmation{DeliveryTag: 1, Ack: true}); err != nil || *first != 0 || len(s.pending) != 0 {
		t.Fatalf("a second outcome %v, %v, %d pending", *first, err, len(s.pending))
	}
}

func TestLateConfirmEndsTheSession(t *testing.T) {
	s := newTestSession()
	s.inFlight(1, "a")
	s.block(amqp.Blocking{Active: true}, true)
	s.block(amqp.Blocking{Active: false}, true) // gives what waited its whole time again
	if err := s.expire(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.expire(time.Now().Add(time.Minute)); err != errLateConfirm {
		t.Fatalf("%v", err)
	}
}

func TestReturnsAreMatchedByMessageID(t *testing.T) {
	s := newTestSession()
	a, b, again := s.inFlight(1, "a"), s.inFlight(2, "b"), s.inFlight(3, "a")
	s.returns <- amqp.Return{MessageId: "a"}
	for tag := range uint64(3) {
		if err := s.confirm(amqp.Confirmation{DeliveryTag: tag + 1, Ack: tag != 1}); err != nil {
			t.Fatal(err)
		}
	}
	if *a != Returned || *b != Rejected || *again != Confirmed || len(s.returned) != 0 {
		t.Fatalf("%v, %v, %v, %d returns left", *a, *b, *again, len(s.returned))
	}
}

func TestServerMajor(t *testing.T) {
	for version, want := range map[any]int{"3.10.8": 3, "4.1.0-rc.1": 4, "": 0, 7: 0} {
		conn := &amqp.Connection{Properties: amqp.Table{"version": version}}
		if got := serverMajor(conn); got != want {
			t.Errorf("%v: %d", version, got)
		}
	}
	if _, limited := queueArgs(queueSpec{}, QueueQuorum, 3)["x-delivery-limit"]; limited {
		t.Error("version 3 refuses a negative limit")
	}
	if queueArgs(queueSpec{}, QueueQuorum, 4)["x-delivery-limit"] != int64(-1) {
		t.Error("version 4 limits redeliveries unless told not to")
	}
}
