package router

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

const (
	// A listener without a file descriptor, or memory, for a connection tries again after a pause, which doubles from
	// the first to the last of these.
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
	// acceptTroubleEvery is how often such trouble is logged, at most.
	acceptTroubleEvery = 10 * time.Second
)

// closingListener does for TLS what hertz does without TLS only: each connection has a context that ends when it closes,
// time limits from the beginning, and a listener that survives a shortage.
type closingListener struct {
	net.Listener
	readTimeout, writeTimeout time.Duration
	log                       *slog.Logger

	complained time.Time // of Accept, which one goroutine calls
}

func (l *closingListener) Accept() (net.Conn, error) {
	conn, err := l.accept()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &closing{Conn: conn, ctx: ctx, cancel: cancel, writeTimeout: l.writeTimeout}
	// hertz sets later limits itself, from the second request on. This one is for the handshake and the first request.
	if err := conn.SetReadDeadline(time.Now().Add(l.readTimeout)); err != nil {
		_ = c.Close()
	}
	return c, nil
}

func (l *closingListener) accept() (net.Conn, error) {
	for pause := firstAcceptPause; ; pause = min(2*pause, lastAcceptPause) {
		conn, err := l.Listener.Accept()
		if !shortage(err) {
			return conn, err
		}
		if time.Since(l.complained) >= acceptTroubleEvery {
			l.complained = time.Now()
			l.log.Error("no connection can be accepted, trying again", "address", l.Addr().String(), "error", err)
		}
		time.Sleep(pause)
	}
}

// shortage tells whether Accept failed for want of something that comes back when connections end.
func shortage(err error) bool {
	for _, want := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

type closing struct {
	net.Conn
	ctx          context.Context
	cancel       context.CancelFunc
	writeTimeout time.Duration
}

// Write closes the connection when the client has not taken p in time: TLS would wait once more, to say goodbye.
func (c *closing) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

func (c *closing) Close() error {
	c.cancel()
	return c.Conn.Close()
}
