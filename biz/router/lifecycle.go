package router

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/cloudwego/hertz/pkg/app/server"
)

// PublicAddr is where buyers are served, with the real port.
func (s *Servers) PublicAddr() net.Addr { return s.publicAt.Addr() }

// AdminAddr is where operators are served, with the real port.
func (s *Servers) AdminAddr() net.Addr { return s.adminAt.Addr() }

// Run serves until Shutdown, or until one of the servers ends with an error, which it returns at once; the other one
// serves on until Shutdown, which lets it finish its requests. It is called once; after a Shutdown it returns at once.
func (s *Servers) Run() error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.running = true
	s.mu.Unlock()
	for _, c := range s.certificates {
		go c.follow(s.ended)
	}
	done := make(chan error, 2)
	var serving sync.WaitGroup
	for _, h := range []*server.Hertz{s.public, s.admin} {
		serving.Go(func() { done <- h.Run() })
	}
	go func() {
		serving.Wait()
		close(s.ended)
	}()
	if err := <-done; err != nil {
		return err
	}
	return <-done
}

// Shutdown takes no new connections, ends the event streams, and waits for the requests in flight, until ctx ends or
// the drain timeout is over. Whatever the handlers use may be closed after it. A second call finds nothing to do.
func (s *Servers) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	again, running := s.stopped, s.running
	s.stopped = true
	s.mu.Unlock()
	switch {
	case again:
		return nil
	case !running:
		return errors.Join(s.publicAt.Close(), s.adminAt.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, s.drain)
	defer cancel()
	// Streams first: hertz would wait for them.
	streams := s.streams.Close(ctx)
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		s.connections.closeIdle(ctx)
	}()
	done := make(chan error, 2)
	for _, h := range []*server.Hertz{s.public, s.admin} {
		go func() { done <- s.stop(ctx, h) }()
	}
	err := errors.Join(streams, <-done, <-done)
	cancel()
	<-swept
	return err
}

// stop shuts one server down. hertz ignores a shutdown that meets a server which is just starting, so that one is
// closed until both have ended.
func (s *Servers) stop(ctx context.Context, h *server.Hertz) error {
	var err error
	if h.IsRunning() {
		err = h.Shutdown(ctx)
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			return err
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
			_ = h.Close()
		}
	}
}
