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
	servers, err := open(cfg, Parts{
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

// TestRequestsInFlightFinish stops a node while a purchase waits for its verdict.
func TestRequestsInFlightFinish(t *testing.T) {
	n := startNode(t, nil)
	hold := make(chan struct{})
	n.shop.set(func() { n.shop.hold = hold })
	answered := make(chan int, 1)
	go func() { answered <- n.buy(t, `{"quantity":1}`).status }()
	eventually(t, "the purchase is under way", func() bool { return n.shop.calls.Load() == 1 })
	stopped := make(chan error, 1)
	go func() { stopped <- n.Shutdown(context.Background()) }()
	eventually(t, "no new connection is taken", func() bool {
		conn, err := net.DialTimeout("tcp", n.PublicAddr().String(), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(hold)
	if status := <-answered; status != 409 {
		t.Errorf("the purchase in flight got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAClientThatHangsUpCancelsItsPurchase(t *testing.T) {
	n := startNode(t, nil)
	n.shop.set(func() { n.shop.hold = make(chan struct{}) })
	conn, err := net.Dial("tcp", n.PublicAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	const request = "POST /v1/skus/demo/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: u1\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}"
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the purchase is under way", func() bool { return n.shop.calls.Load() == 1 })
	_ = conn.Close()
	eventually(t, "the purchase is cancelled", func() bool { return n.shop.gone.Load() == 1 })
	if logged := n.log.lines("level=ERROR"); len(logged) != 0 {
		t.Errorf("a client that hung up is no error of ours: %q", logged)
	}
}
