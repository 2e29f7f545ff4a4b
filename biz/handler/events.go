package handler

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/protocol/sse"

	"stockade/biz/sale"
)

// StreamLimits bounds the event streams of a node. It reads at most MaxStreams orders every Poll.
type StreamLimits struct {
	MaxStreams int
	Poll       time.Duration // between two looks at an order
	Heartbeat  time.Duration // longest silence on a stream
	MaxAge     time.Duration // a stream ends after it; the client connects again
}

// Streams counts the event streams and ends them.
type Streams struct {
	limits StreamLimits

	mu      sync.Mutex
	open    int
	closing bool
	stop    chan struct{} // closed: streams end
	empty   chan struct{} // closed: closing, and none is open
}

// NewStreams returns a Streams that admits streams.
func NewStreams(limits StreamLimits) *Streams {
	return &Streams{limits: limits, stop: make(chan struct{}), empty: make(chan struct{})}
}

func (s *Streams) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.open >= s.limits.MaxStreams {
		return false
	}
	s.open++
	return true
}

func (s *Streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.closing && s.open == 0 {
		close(s.empty)
	}
}

// Close ends every stream, admits no new one, and waits until they are gone or ctx ends. It may be called again.
func (s *Streams) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.stop)
		if s.open == 0 {
			close(s.empty)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Why a stream ended, in the data of its last event.
const (
	endFinal    = "final"    // the order will not change any more
	endShutdown = "shutdown" // this node stops; connect again
	endTimeout  = "timeout"  // the stream got old; connect again
)

// OrderEvents serves GET /v1/orders/{id}/events: an `order` event with the order at once and after each change of its
// state, comments in between, and one `end` event.
func (a *API) OrderEvents(ctx context.Context, c *app.RequestContext) {
	order, buyer, problem := a.order(ctx, c)
	switch {
	case problem != nil:
		problem.Write(c)
		return
	case order.ID == sale.OrderID{}:
		return
	}
	if final(order.State) && string(c.GetHeader(sse.LastEventIDHeader)) == string(order.State) {
		// An EventSource connects again after each end; 204 tells it that there is nothing more to come.
		c.Response.SetStatusCode(204)
		return
	}
	if !a.Streams.enter() {
		(&Problem{Code: TooManyStreams}).Write(c)
		return
	}
	defer a.Streams.leave()
	stream := eventStream{api: a, buyer: buyer, last: order, out: sse.NewWriter(c)}
	// A failed write means that the client is gone, which needs no answer.
	_ = stream.run(ctx)
}

func final(s sale.OrderState) bool { return s == sale.OrderPaid || s == sale.OrderClosed }

type eventStream struct {
	api   *API
	buyer string
	last  sale.Order
	out   *sse.Writer
}

func (s *eventStream) run(ctx context.Context) error {
	limits := s.api.Streams.limits
	poll, beat := time.NewTicker(limits.Poll), time.NewTicker(limits.Heartbeat)
	defer poll.Stop()
	defer beat.Stop()
	old := time.NewTimer(limits.MaxAge)
	defer old.Stop()

	for err := s.tell(); ; {
		switch {
		case err != nil:
			return err
		case final(s.last.State):
			return s.end(endFinal)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.api.Streams.stop:
			return s.end(endShutdown)
		case <-old.C:
			return s.end(endTimeout)
		case <-beat.C:
			err = s.out.WriteKeepAlive()
		case <-poll.C:
			err = s.look(ctx)
		}
	}
}

// look reads the order and tells a change. A failed read is made up for by the next one.
func (s *eventStream) look(ctx context.Context) error {
	order, err := s.api.Orders.OrderOf(ctx, s.last.SKU, s.buyer, s.last.ID)
	if err != nil || order.State == s.last.State {
		return nil
	}
	s.last = order
	return s.tell()
}

func (s *eventStream) tell() error {
	data, err := json.Marshal(s.last)
	if err != nil {
		return err
	}
	return s.out.WriteEvent(string(s.last.State), "order", data)
}

func (s *eventStream) end(why string) error {
	return s.out.WriteEvent("", "end", []byte(`{"reason":"`+why+`"}`))
}
