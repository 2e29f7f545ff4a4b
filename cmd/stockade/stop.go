package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// phase is one step of a stop. end returns when everything of that step has ended, whatever ctx says; ctx is when the
// stop as a whole is over.
type phase struct {
	name string
	end  func(ctx context.Context) error
}

// runPhases ends one phase after the other. ctx bounds all of them together: each gets what those before it have left.
// A phase that is not over by then is logged by its name and left behind, and the later ones are begun and not awaited.
// The error names every phase that was left behind.
func runPhases(ctx context.Context, log *slog.Logger, phases []phase) error {
	var errs []error
	var left []string
	for _, p := range phases {
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- p.end(ctx) }()
		select {
		case err := <-ended:
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			}
			log.Debug("stop: phase over", "phase", p.name, "took", time.Since(began))
		case <-ctx.Done():
			left = append(left, p.name)
			log.Error("stop: phase did not end in time, what it had in hand is left to the sweepers", "phase", p.name)
		}
	}
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("not stopped in time: %s", strings.Join(left, ", ")))
	}
	return errors.Join(errs...)
}

// stop ends the node, bounded by ctx in all: first no new requests, then those in flight with all that they need, then
// what was accepted goes out, then the clients close. Clients that somebody may still be using end with the process.
func (n *node) stop(ctx context.Context) error {
	n.health.stopping()
	err := runPhases(ctx, n.log, n.phases())
	if ctx.Err() != nil {
		return err
	}
	return errors.Join(err, runPhases(ctx, n.log, []phase{{"clients", func(context.Context) error { return n.closeClients() }}}))
}

// phases are what a node stops, in the order in which the parts need each other.
func (n *node) phases() []phase {
	return []phase{
		{"requests", n.servers.Shutdown}, // event streams first, they would not end by themselves
		{"writer", finish(n.writer.Close)},
		{"settlement", finish(n.settling.stop)},
		{"relay", finish(n.relay.Close)},
		{"consumers", finish(n.consumers.Close)},
		{"loops", finish(func() { n.endLoops(); n.background.Wait() })},
	}
}

// finish makes a phase of what takes no context and cannot fail.
func finish(end func()) func(context.Context) error {
	return func(context.Context) error {
		end()
		return nil
	}
}
