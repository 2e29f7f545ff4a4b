package mq

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is one AMQP connection, dialled when a channel is wanted and anew after it broke. The client's own recovery stays
// off: with it, confirms were lost for good after a cut, and an ack could hit another delivery than it was meant for.
type link struct {
	cfg  Config
	deps Deps
	name string // shown by the management tools of the server

	ctx    context.Context // ends with the link, and with it a dial under way
	cancel context.CancelFunc

	mu      sync.Mutex
	conn    *amqp.Connection
	sock    net.Conn
	dialled bool
}

func newLink(cfg Config, deps Deps, name string) *link {
	l := &link{cfg: cfg, deps: deps, name: name}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// line is a channel with the connection it lives on. It belongs to one goroutine.
type line struct {
	*amqp.Channel
	conn  *amqp.Connection
	sock  net.Conn
	bound time.Duration
}

// open opens a channel. Each step is bounded by Config.ConnectTimeoutMs. ErrLost after close.
func (l *link) open(ctx context.Context) (*line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, ErrLost
	}
	if l.conn == nil || l.conn.IsClosed() {
		if err := l.dial(ctx); err != nil {
			return nil, fmt.Errorf("connect to the broker: %w", err)
		}
	}
	ln := &line{conn: l.conn, sock: l.sock, bound: ms(l.cfg.ConnectTimeoutMs)}
	err := ln.within(func() (err error) {
		ln.Channel, err = l.conn.Channel()
		return err
	})
	if err != nil {
		ln.cut()
		l.conn = nil
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	return ln, nil
}

func (l *link) dial(ctx context.Context) error {
	if l.dialled {
		l.deps.Counters.reconnects.Add(1)
	}
	l.dialled = true
	ctx, cancel := context.WithTimeout(ctx, ms(l.cfg.ConnectTimeoutMs))
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()

	var sock net.Conn
	// The handshake does not know ctx: when ctx ends, the socket is closed under it.
	unwatch := func() bool { return true }
	conn, err := amqp.DialConfig(l.cfg.URL, amqp.Config{
		Heartbeat:  ms(l.cfg.HeartbeatMs),
		Properties: amqp.Table{"product": "stockade", "connection_name": l.name},
		Dial: func(network, address string) (net.Conn, error) {
			raw, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			unwatch = context.AfterFunc(ctx, func() { _ = raw.Close() })
			sock = boundedWrites{raw, ms(l.cfg.WriteTimeoutMs)}
			return sock, nil
		},
	})
	inTime := unwatch()
	if err == nil && !inTime {
		err = ctx.Err()
	}
	if err != nil {
		if sock != nil {
			_ = sock.Close()
		}
		return err
	}
	l.conn, l.sock = conn, sock
	return nil
}

// drop breaks the connection of a line, so that the next one is dialled anew.
func (l *link) drop(ln *line) {
	ln.cut()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == ln.conn {
		l.conn = nil
	}
}

// close ends the connection. The server is told if it listens.
func (l *link) close() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.CloseDeadline(time.Now().Add(closeTimeout))
		_ = l.sock.Close()
		l.conn = nil
	}
}

// closeTimeout bounds the farewell to a server that may be gone.
const closeTimeout = time.Second

// within lets f talk to the server. When f takes too long the connection is cut, which ends f: the client waits for
// answers without a bound of its own.
func (ln *line) within(f func() error) error {
	late := time.AfterFunc(ln.bound, ln.cut)
	defer late.Stop()
	return f()
}

// cut breaks the connection at once.
func (ln *line) cut() { _ = ln.sock.Close() }

// boundedWrites gives up a peer that stops reading. Without it a write would hang for ever, and with it everything else
// on the connection, its shutdown included.
type boundedWrites struct {
	net.Conn
	timeout time.Duration
}

func (c boundedWrites) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
