package main

import (
	"context"
	"sync"
	"time"

	"stockade/biz/handler"
)

// Bounds of the look at the dependencies.
const (
	probeEvery   = time.Second
	probeTimeout = 500 * time.Millisecond
)

// probe asks one dependency for a sign of life.
type probe struct {
	name string
	ping func(context.Context) error
}

// health knows whether the node can answer, and which of its dependencies are down.
type health struct {
	probes []probe

	mu     sync.Mutex
	state  string // why not ready; empty when ready
	broken []string
}

// newHealth returns the health of a node that is starting.
func newHealth(mysql, redis func(context.Context) error) *health {
	return &health{
		probes: []probe{{"mysql", mysql}, {"redis", redis}},
		state:  "starting",
	}
}

func (h *health) ready()    { h.become("") }
func (h *health) stopping() { h.become("stopping") }

func (h *health) become(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != "stopping" { // nothing comes after it
		h.state = state
	}
}

// Readiness implements handler.Health.
func (h *health) Readiness() handler.Readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := handler.Readiness{Ready: h.state == "", Degraded: h.broken}
	if h.state != "" {
		r.Reasons = []string{h.state}
	}
	return r
}

// Run probes the dependencies until ctx ends.
func (h *health) Run(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			broken := h.probe(ctx)
			h.mu.Lock()
			h.broken = broken
			h.mu.Unlock()
		}
	}
}

func (h *health) probe(ctx context.Context) []string {
	var broken []string
	for _, p := range h.probes {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		if p.ping(ctx) != nil {
			broken = append(broken, p.name+" does not answer")
		}
		cancel()
	}
	return broken
}
