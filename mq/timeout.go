package mq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"stockade/biz/sale"
)

// TimeoutType is the content type of a timeout message: an object with the field order_ids.
const TimeoutType = "application/vnd.stockade.timeout+json; version=1"

// Bounds of timeout messages. A broker refuses lifetimes of more than 49 days; sales have windows of at most 30.
const (
	maxDelays           = 32 // payment windows with a delay queue, for each node
	maxDelay            = 40 * 24 * time.Hour
	maxTimeoutsInFlight = 64
	timeoutPublishWait  = 50 * time.Millisecond // for a batch of orders
)

type timeoutMessage struct {
	Orders []sale.OrderID `json:"order_ids"`
}

// timeouts tells the broker to remind us of orders when their payment windows end. Nothing waits for its confirms, and
// what the broker does not take at once is left out: the expiry sweeper finds every order that is due by itself, so a
// lost message costs a little time and a repeated one nothing.
type timeouts struct {
	*workers
	slots chan struct{} // one for each message without outcome

	mu      sync.Mutex
	windows map[time.Duration]bool
}

func newTimeouts(w *workers) *timeouts {
	return &timeouts{
		workers: w, slots: make(chan struct{}, maxTimeoutsInFlight), windows: map[time.Duration]bool{},
	}
}

// publish sends a message for each payment window and each MaxEnvelopeOrders orders of it.
func (t *timeouts) publish(orders []sale.Order) {
	byWindow := map[time.Duration][]sale.OrderID{}
	for _, o := range orders {
		window := o.ExpiresAt.Sub(o.AcceptedAt)
		byWindow[window] = append(byWindow[window], o.ID)
	}
	ctx, cancel := context.WithTimeout(t.working, timeoutPublishWait)
	defer cancel()
	for window, ids := range byWindow {
		for chunk := range slices.Chunk(ids, MaxEnvelopeOrders) {
			t.publishOne(ctx, window, chunk)
		}
	}
}

func (t *timeouts) publishOne(ctx context.Context, window time.Duration, ids []sale.OrderID) {
	skip := func() { t.deps.Counters.timeoutsSkipped.Add(uint64(len(ids))) }
	if !t.admits(window) {
		skip()
		return
	}
	body, err := strictJSON.Marshal(timeoutMessage{ids})
	if err != nil {
		skip()
		return
	}
	select {
	case t.slots <- struct{}{}:
	default:
		skip()
		return
	}
	t.broker.Publish(ctx, Message{
		Exchange:    t.names.Orders,
		Key:         t.names.Delay(window),
		ID:          "timeout-" + ids[0].String(),
		ContentType: TimeoutType,
		Body:        body,
		Mandatory:   true,
		Delay:       window,
	}, func(o Outcome) {
		<-t.slots
		if o != Confirmed {
			skip()
			return
		}
		t.deps.Counters.timeouts.Add(uint64(len(ids)))
	})
}

// admits tells whether a payment window has a delay queue, or may get one.
func (t *timeouts) admits(window time.Duration) bool {
	if window < time.Millisecond || window > maxDelay || window%time.Millisecond != 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.windows[window] && len(t.windows) == maxDelays {
		return false
	}
	t.windows[window] = true
	return true
}

// decodeTimeout is strict, as DecodeEnvelope is.
func decodeTimeout(d Delivery) ([]sale.OrderID, error) {
	if d.ContentType != TimeoutType {
		return nil, fmt.Errorf("content type %.100q: must be %q", d.ContentType, TimeoutType)
	}
	if len(d.Body) > MaxEnvelopeBytes {
		return nil, fmt.Errorf("timeout message of %d bytes: must be at most %d", len(d.Body), MaxEnvelopeBytes)
	}
	var m timeoutMessage
	if err := strictJSON.Unmarshal(d.Body, &m); err != nil {
		return nil, fmt.Errorf("decode timeout message: %w", err)
	}
	if len(m.Orders) == 0 || len(m.Orders) > MaxEnvelopeOrders {
		return nil, fmt.Errorf("timeout message of %d orders: must hold 1 to %d", len(m.Orders), MaxEnvelopeOrders)
	}
	return m.Orders, nil
}
