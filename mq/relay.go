package mq

import (
	"context"
	"errors"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Outbox is what the relay needs of the store. Rows go NEW → SENT → DONE, or from SENT back to NEW.
type Outbox interface {
	// MarkSent moves the NEW rows among these ids, at most Config.MarkBatch, to SENT. Other rows stay as they are.
	MarkSent(ctx context.Context, ids []sale.OrderID) error
	// ClaimNew returns at most limit NEW rows that are older than olderThan, and were not claimed for that long. Two
	// nodes that claim at the same time get different rows. The claim is committed before it returns.
	ClaimNew(ctx context.Context, olderThan time.Duration, limit int) ([]sale.Order, error)
	// RecheckSent looks into at most limit SENT rows that are older than olderThan, the wait doubling with each time a
	// row was renewed: those whose orders were written become DONE, the others NEW again, to be claimed at once.
	RecheckSent(ctx context.Context, olderThan time.Duration, limit int) (done, renewed int, err error)
	// ClaimNotices is ClaimNew for notices.
	ClaimNotices(ctx context.Context, olderThan time.Duration, limit int) ([]sale.Notice, error)
	// DeleteNotices forgets notices that the broker has.
	DeleteNotices(ctx context.Context, seqs []int64) error
}

// Relay brings accepted orders from the outbox to the broker: at once those that it is offered, by its sweepers those
// that it was not, or whose publishing failed.
//
// While the broker is away or its breaker open, or sale.ToggleRelay pauses the relay, nothing piles up: what is offered is dropped, its row
// stays NEW, and the sweepers wait. As soon as that is over a sweeper looks for such rows.
type Relay struct {
	cfg    Config
	deps   Deps
	names  Names
	broker Broker
	outbox Outbox

	ring    *ring
	missed  missed
	window  chan struct{} // a slot for each envelope between packing and its mark
	settled chan packed   // as long as the window, so that a broker's callback never waits

	start   sync.Once
	stop    sync.Once
	closing chan struct{}   // closed first: no more offers, no more sweeps
	drained chan struct{}   // closed when nothing is in flight any more, or ctx ended
	ctx     context.Context // ends when draining has taken too long
	cancel  context.CancelFunc
	sweeps  sync.WaitGroup
	packing sync.WaitGroup
	marking sync.WaitGroup
}

// packed is an envelope on its way.
type packed struct {
	ids     []sale.OrderID
	outcome Outcome
	done    func(confirmed bool) // called when the envelope has been dealt with; may be nil
}

// NewRelay returns a relay that queues offers but does nothing until Start.
func NewRelay(cfg Config, deps Deps, broker Broker, outbox Outbox) *Relay {
	ctx, cancel := context.WithCancel(context.Background())
	return &Relay{
		cfg:     cfg,
		deps:    deps.withDefaults(),
		names:   NamesFor(cfg.Prefix),
		broker:  broker,
		outbox:  outbox,
		ring:    newRing(cfg.RelayQueue),
		window:  make(chan struct{}, cfg.RelayWindow),
		settled: make(chan packed, cfg.RelayWindow),
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		ctx:     ctx,
		cancel:  cancel,
	}
}

// Start begins to publish and to sweep.
func (r *Relay) Start() {
	r.start.Do(func() {
		r.packing.Go(r.pack)
		r.marking.Go(r.mark)
		r.sweeps.Go(r.sweepNew)
		r.sweeps.Go(r.sweepMissed)
		r.sweeps.Go(r.sweepSent)
		r.sweeps.Go(r.sweepNotices)
	})
}

// Offer hands over orders whose outbox rows were just committed. It never blocks and does not keep the slice: orders
// that do not fit into the queue are counted and left to the sweeper.
func (r *Relay) Offer(orders []sale.Order) {
	select {
	case <-r.closing:
		r.deps.Counters.overflowed.Add(uint64(len(orders)))
		return
	default:
	}
	if left := r.ring.put(orders); left > 0 {
		r.missed.note()
		r.deps.Counters.overflowed.Add(uint64(left))
	}
}

// Close stops the sweepers, publishes what was offered and marks what was confirmed, for at most
// Config.StopTimeoutMs, and returns when every goroutine of the relay has ended. The rest stays NEW in the outbox.
func (r *Relay) Close() {
	r.stop.Do(func() {
		r.start.Do(func() {}) // a Start after Close does nothing
		close(r.closing)
		late := time.AfterFunc(ms(r.cfg.StopTimeoutMs), r.cancel)
		defer late.Stop()
		r.sweeps.Wait()
		r.packing.Wait()
		r.awaitWindow()
		close(r.drained)
		r.marking.Wait()
		r.cancel()
	})
}

// awaitWindow waits until no envelope is in flight, or ctx ends. It takes every slot itself, so nothing is published
// afterwards.
func (r *Relay) awaitWindow() {
	for range cap(r.window) {
		select {
		case r.window <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
	}
}

// pack publishes what was offered.
func (r *Relay) pack() {
	for {
		select {
		case <-r.ring.ready:
		case <-r.closing:
			for r.ctx.Err() == nil {
				orders := r.ring.take(MaxEnvelopeOrders)
				if len(orders) == 0 {
					return
				}
				r.publishOffered(orders)
			}
			return
		}
		if orders := r.ring.take(MaxEnvelopeOrders); len(orders) > 0 {
			r.publishOffered(orders)
		}
	}
}

func (r *Relay) publishOffered(orders []sale.Order) {
	if r.held() {
		r.missed.note()
		r.deps.Counters.overflowed.Add(uint64(len(orders)))
		return
	}
	r.publish(orders, nil)
}

// held tells that nothing is to be published now: an operator paused the relay, or the breaker is open.
func (r *Relay) held() bool { return r.deps.Paused(sale.ToggleRelay) || r.deps.Breaker.Open() }

// publish sends one envelope as soon as the window has room. done, if any, is called when it has been dealt with, also
// when it was never sent, and told whether the broker has it.
func (r *Relay) publish(orders []sale.Order, done func(confirmed bool)) {
	select {
	case r.window <- struct{}{}:
	case <-r.ctx.Done():
		call(done, false)
		return
	}
	orders = r.sendable(orders)
	body, err := EncodeEnvelope(orders)
	if err != nil {
		if len(orders) > 0 {
			r.deps.Log.Error("relay: cannot pack an envelope", "error", err)
		}
		r.release(done, false)
		return
	}
	if err := r.deps.Faults.At(r.ctx, sale.RelayPacked); err != nil {
		r.missed.note()
		r.release(done, false)
		return
	}
	told, err := r.allow()
	if err != nil {
		r.missed.note()
		r.release(done, false)
		return
	}
	ids := make([]sale.OrderID, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
	}
	r.broker.Publish(r.ctx, Message{
		Exchange:    r.names.Orders,
		Key:         r.names.Create,
		ID:          envelopeID(orders),
		ContentType: EnvelopeType,
		Body:        body,
		Mandatory:   true,
	}, func(o Outcome) {
		told(o)
		if o == NotSent || o == Unknown { // a full queue is full for longer: the other sweeper comes back to it
			r.missed.note()
		}
		r.settled <- packed{ids, o, done}
	})
}

// allow asks the breaker for an envelope; told wants its outcome. A broker that is not connected is not asked about: it says
// NotSent by itself, and is back as soon as its connection is. One that refuses or returns a message is well.
func (r *Relay) allow() (told func(Outcome), err error) {
	if !r.broker.Ready() {
		return func(Outcome) {}, nil
	}
	done, err := r.deps.Breaker.Allow()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func(o Outcome) {
		var sick error
		if o == Unknown || o == NotSent {
			sick = errors.New(o.String())
		}
		done(sick, time.Since(began))
	}, nil
}

// sendable leaves out orders that no consumer could write. Their rows stay NEW, so that each sweep logs them again.
func (r *Relay) sendable(orders []sale.Order) []sale.Order {
	good := orders[:0]
	for _, o := range orders {
		if err := CheckOrder(o); err != nil {
			r.deps.Log.Error("relay: an outbox row cannot be published", "order", o.ID, "error", err)
			continue
		}
		good = append(good, o)
	}
	return good
}

func (r *Relay) release(done func(confirmed bool), confirmed bool) {
	<-r.window
	call(done, confirmed)
}

func call(done func(confirmed bool), confirmed bool) {
	if done != nil {
		done(confirmed)
	}
}
