package mq

import (
	"context"
	"sync"
	"time"
)

// publisher takes messages from many goroutines and has one goroutine of its own that talks to the server, in sessions:
// a session is one channel, from its opening to the first thing that goes wrong with it. Between sessions, and while
// the server blocks publishers, the publisher is shut and messages are NotSent.
type publisher struct {
	cfg  Config
	deps Deps
	link *link

	slots chan struct{} // one for each message without outcome
	queue chan request  // as long as slots, so that sending to it never waits

	mu   sync.RWMutex // held by senders on queue, so that shut misses none of them
	open bool

	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

type request struct {
	msg  Message
	done func(Outcome)
	sent time.Time
}

// givenUp tells that the message has its outcome already: Unknown.
func (r request) givenUp() bool { return r.done == nil }

func startPublisher(cfg Config, deps Deps) *publisher {
	p := &publisher{
		cfg:   cfg,
		deps:  deps,
		link:  newLink(cfg, deps, cfg.Prefix+" relay"),
		slots: make(chan struct{}, cfg.MaxInFlight),
		queue: make(chan request, cfg.MaxInFlight),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ended.Go(p.run)
	return p
}

func (p *publisher) publish(ctx context.Context, m Message, done func(Outcome)) {
	if !p.isOpen() || !p.acquire(ctx) {
		p.deps.Counters.count(NotSent)
		done(NotSent)
		return
	}
	p.mu.RLock()
	open := p.open
	if open {
		p.queue <- request{msg: m, done: done}
	}
	p.mu.RUnlock()
	if !open {
		p.finish(request{done: done}, NotSent)
	}
}

func (p *publisher) acquire(ctx context.Context) bool {
	select { // room counts even when ctx has just ended
	case p.slots <- struct{}{}:
		return true
	default:
	}
	select {
	case p.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *publisher) isOpen() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.open
}

func (p *publisher) finish(r request, o Outcome) {
	p.deps.Counters.count(o)
	<-p.slots
	r.done(o)
}

func (p *publisher) setOpen(open bool) {
	p.mu.Lock()
	p.open = open
	p.mu.Unlock()
	if open {
		return
	}
	for { // whoever sent before p.open fell is in the queue by now
		select {
		case r := <-p.queue:
			p.finish(r, NotSent)
		default:
			return
		}
	}
}

// run holds one session after the other. The wait between them grows until a session lasts.
func (p *publisher) run() {
	wait := backoff{min: ms(p.cfg.ReconnectMinMs), max: ms(p.cfg.ReconnectMaxMs)}
	for p.ctx.Err() == nil {
		begin := time.Now()
		err := p.session()
		if p.ctx.Err() != nil {
			return
		}
		if time.Since(begin) > wait.max {
			wait.reset()
		}
		pause := wait.wait()
		p.deps.Log.Warn("relay: no connection to the broker", "error", err, "again_in", pause)
		select {
		case <-p.deps.After(pause):
		case <-p.ctx.Done():
		}
	}
}

func (p *publisher) close() {
	p.cancel()
	p.link.cancel() // a dial under way
	p.ended.Wait()
	p.link.close()
}
