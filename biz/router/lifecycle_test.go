package router

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"
)

func newServers(t *testing.T) *Servers {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s := &stub{}
	servers, err := New(cfg, Parts{
		Sales: s, Orders: s, Stock: s, SKUs: s, Health: s, Limits: s, Winners: s,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return servers
}

// TestShutdownAtAnyMoment stops servers right after, or while, they start.
func TestShutdownAtAnyMoment(t *testing.T) {
	for i := range 20 {
		s := newServers(t)
		done := make(chan error, 1)
		go func() { done <- s.Run() }()
		if i%2 == 1 {
			eventually(t, "the public server runs", s.public.IsRunning)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Run does not end")
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
	}
}

func TestServersThatNeverRanGiveTheirAddressesBack(t *testing.T) {
	s := newServers(t)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{s.PublicAddr().String(), s.AdminAddr().String()} {
		ln, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatalf("%s is still taken: %v", at, err)
		}
		_ = ln.Close()
	}
	if err := s.Run(); err != nil {
		t.Errorf("running after a stop: %v", err)
	}
}
