package mq

import (
	"context"
	"sync"
	"time"
)

// workers consume one queue, each over a subscription of its own.
type workers struct {
	cfg    Config
	deps   Deps
	names  Names
	broker Broker

	queue  string
	toggle string // the work stops while this toggle pauses it
	width  int    // subscriptions
	// work handles a delivery, with others that wait already, and acks. False gives up the subscription: whatever is
	// not acked is delivered again.
	work func(sub Subscription, first Delivery) bool

	start     sync.Once
	stop      sync.Once
	receiving context.Context // ends first: no new batch
	working   context.Context // ends when finishing the batch has taken too long
	stopNow   context.CancelFunc
	stopWork  context.CancelFunc
	done      sync.WaitGroup
}

// pausePoll is how often somebody who was paused asks whether to go on.
const pausePoll = 100 * time.Millisecond

func newWorkers(cfg Config, deps Deps, broker Broker) *workers {
	w := &workers{
		cfg: cfg, deps: deps.withDefaults(), names: NamesFor(cfg.Prefix), broker: broker, width: 1,
	}
	w.working, w.stopWork = context.WithCancel(context.Background())
	w.receiving, w.stopNow = context.WithCancel(w.working)
	return w
}

// Start begins to consume.
func (w *workers) Start() {
	w.start.Do(func() {
		for range w.width {
			w.done.Go(w.run)
		}
	})
}

// Close lets each subscription finish its batch, for at most Config.StopTimeoutMs, and returns when all have ended. What
// is not acked is delivered again, to somebody.
func (w *workers) Close() {
	w.stop.Do(func() {
		w.start.Do(func() {}) // a Start after Close does nothing
		w.stopNow()
		late := time.AfterFunc(ms(w.cfg.StopTimeoutMs), w.stopWork)
		defer late.Stop()
		w.done.Wait()
		w.stopWork()
	})
}

// run subscribes, and again whenever the subscription is lost or a pause is over.
func (w *workers) run() {
	wait := w.newBackoff()
	for w.awaitRun() {
		sub, err := w.broker.Subscribe(w.receiving, w.queue, w.cfg.Prefetch)
		if err == nil {
			wait.reset()
			w.consume(sub)
			sub.Close()
		} else if w.receiving.Err() == nil {
			w.deps.Log.Warn("consumer: cannot subscribe", "queue", w.queue, "error", err)
		}
		w.pause(w.receiving, wait)
	}
}

// awaitRun returns true when there is something to do, false when the workers stop.
func (w *workers) awaitRun() bool {
	for w.receiving.Err() == nil && w.paused() {
		select {
		case <-w.deps.After(pausePoll):
		case <-w.receiving.Done():
		}
	}
	return w.receiving.Err() == nil
}

func (w *workers) paused() bool { return w.deps.Paused(w.toggle) }

// consume handles deliveries until the subscription is lost, work gives it up, a pause begins or the workers stop. A
// pause that begins while nothing arrives is noticed with the next delivery, which goes back to the queue.
func (w *workers) consume(sub Subscription) {
	for {
		select {
		case <-w.receiving.Done():
			return
		case first, open := <-sub.Deliveries():
			if !open || w.receiving.Err() != nil || w.paused() || !w.work(sub, first) {
				return
			}
		}
	}
}

// insist tries a step again and again: an error is trouble with the infrastructure, which is nobody's attempt. False
// means that the deliveries have to go back unacked, because the workers stop or were paused: a store that is down when
// they stop may stay down, and the queue is the safer place.
func (w *workers) insist(what string, step func(ctx context.Context) error) bool {
	wait := w.newBackoff()
	for {
		ctx, cancel := context.WithTimeout(w.working, ms(w.cfg.InsertTimeoutMs))
		err := step(ctx)
		cancel()
		if err == nil {
			return true
		}
		w.deps.Log.Warn("consumer: trouble, will be tried again", "step", what, "error", err)
		if !w.pause(w.receiving, wait) || w.paused() {
			return false
		}
	}
}

func (w *workers) newBackoff() *backoff {
	return &backoff{min: ms(w.cfg.PauseMinMs), max: ms(w.cfg.PauseMaxMs)}
}

// pause waits; false when ctx ended first.
func (w *workers) pause(ctx context.Context, wait *backoff) bool {
	select {
	case <-w.deps.After(wait.wait()):
		return true
	case <-ctx.Done():
		return false
	}
}
