package router

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stockade/biz/sale"
)

// startImpatient starts a node whose public listener speaks TLS and waits for nobody.
func startImpatient(t *testing.T) (*node, *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key, "x")
	return startNode(t, func(c *Config) {
		quick(c)
		c.TLSCertFile, c.TLSKeyFile = cert, key
		c.ReadTimeoutMs, c.WriteTimeoutMs = 100, 100
	}), pool
}

func (n *node) openConnections() int {
	n.connections.mu.Lock()
	defer n.connections.mu.Unlock()
	return len(n.connections.open)
}

// dialTLS connects and sends what, after the handshake.
func dialTLS(t *testing.T, n *node, pool *x509.CertPool, what string) net.Conn {
	t.Helper()
	raw, err := net.Dial("tcp", n.PublicAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	// A small window: what nobody reads is soon the server's trouble.
	if err := raw.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	if _, err := io.WriteString(conn, what); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A TLS client that goes silent before or in its first request is not waited for.
func TestASilentTLSClientIsClosed(t *testing.T) {
	n, pool := startImpatient(t)
	for name, dial := range map[string]func() net.Conn{
		"before the handshake": func() net.Conn {
			conn, err := net.Dial("tcp", n.PublicAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
		"after the handshake": func() net.Conn { return dialTLS(t, n, pool, "") },
		"in the head":         func() net.Conn { return dialTLS(t, n, pool, "GET /livez HTTP/1.1\r\nHost: x\r\n") },
		"in the body": func() net.Conn {
			return dialTLS(t, n, pool, "POST /v1/skus/demo/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: u1\r\nContent-Length: 99\r\n\r\n{")
		},
	} {
		conn := dial()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("silent %s: the connection stays open", name)
		}
		_ = conn.Close()
	}
	eventually(t, "closed connections are forgotten", func() bool { return n.openConnections() == 0 })
}

// A TLS client that takes no answers, or no events, is not waited for. The stop of the node, which waits for what is in
// hand, finds nothing.
func TestATLSClientThatNeverReadsIsClosed(t *testing.T) {
	n, pool := startImpatient(t)
	dialTLS(t, n, pool, strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n", 200))
	eventually(t, "a client that takes no answers is closed", func() bool { return n.openConnections() == 0 })

	order := orderOf(sale.OrderQueued)
	order.SKU = strings.Repeat("x", 1<<16) // no real one is that long, but its events soon fill what the kernel buffers
	n.put(order)
	dialTLS(t, n, pool, "GET /v1/orders/"+someID.String()+"/events HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: u1\r\n\r\n")
	eventually(t, "the stream is open", func() bool { return n.openConnections() == 1 })
	states := []sale.OrderState{sale.OrderQueued, sale.OrderCreated}
	turn := 0
	eventually(t, "a client that takes no events is closed", func() bool {
		turn++
		order.State = states[turn%2]
		n.put(order)
		return n.openConnections() == 0
	})
}

// An event stream outlives both limits while its client listens.
func TestATLSStreamOutlivesTheLimits(t *testing.T) {
	n, pool := startImpatient(t)
	n.put(orderOf(sale.OrderQueued))
	begun := time.Now()
	conn := dialTLS(t, n, pool, "GET /v1/orders/"+someID.String()+"/events HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: u1\r\n\r\n")
	for buf := make([]byte, 4096); time.Since(begun) < 500*time.Millisecond; {
		if _, err := conn.Read(buf); err != nil {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
	}
}

// failingListener fails as often as told before it accepts.
type failingListener struct {
	net.Listener
	failures atomic.Int64
	err      error
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: l.err}
	}
	return l.Listener.Accept()
}

// runOver runs servers whose public listener speaks TLS and fails.
func runOver(t *testing.T, failures int64, why error, log *slog.Logger) (*Servers, *x509.CertPool, <-chan error) {
	t.Helper()
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.TLSCertFile, cfg.TLSKeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cfg.TLSCertFile, cfg.TLSKeyFile, "x")
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingListener{Listener: l.public, err: why}
	failing.failures.Store(failures)
	l.public = failing
	nobody := &stub{}
	s := New(l, Parts{
		Sales: nobody, Orders: nobody, Stock: nobody, SKUs: nobody, Health: nobody, Limits: nobody, Winners: nobody,
		Now: time.Now, Log: log,
	})
	done := make(chan error, 1)
	go func() { done <- s.Run() }()
	return s, pool, done
}

func TestAShortageOfFilesEndsNoListener(t *testing.T) {
	for _, why := range []error{os.NewSyscallError("accept4", syscall.EMFILE), os.NewSyscallError("accept4", syscall.ENFILE)} {
		book := &logBook{}
		s, pool, done := runOver(t, 4, why, slog.New(slog.NewTextHandler(book, nil)))
		if _, _, err := over(t, pool, "https://"+s.PublicAddr().String()+"/livez", tls.VersionTLS13); err != nil {
			t.Errorf("after %v: %v", why, err)
		}
		if logged := book.lines("no connection can be accepted"); len(logged) != 1 {
			t.Errorf("logged %q", logged)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// One listener that fails for good ends Run. The other one serves until the stop, so that what is in hand can finish.
func TestAFailedListenerEndsRun(t *testing.T) {
	broken := errors.New("broken for good")
	s, _, done := runOver(t, 1, fmt.Errorf("accept: %w", broken), slog.New(slog.DiscardHandler))
	select {
	case err := <-done:
		if !errors.Is(err, broken) {
			t.Errorf("run ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Run does not end")
	}
	admin := "http://" + s.AdminAddr().String() + "/livez"
	eventually(t, "the other listener answers", func() bool {
		resp, err := http.Get(admin)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if resp, err := http.Get(admin); err == nil {
		_ = resp.Body.Close()
		t.Error("the other listener answers after the stop")
	}
}
