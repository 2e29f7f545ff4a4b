package router

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
)

// certificateEvery is how often the files of a certificate are looked at, at most, while clients connect.
const certificateEvery = time.Second

// certificate is that of one listener. A changed pair of files is taken over at the next handshake; a pair that cannot be
// used is logged, and the one before it stays.
type certificate struct {
	cert, key string // paths

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
	seen    [2]stamp
	log     *slog.Logger // nil until the servers are made
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// newCertificate reads a pair for the first time, when it has to be right. Without files there is none, and no TLS.
func newCertificate(cert, key string) (*certificate, error) {
	if cert == "" {
		return nil, nil
	}
	c := &certificate{cert: cert, key: key}
	return c, c.load()
}

// load reads the pair if it changed. The caller holds mu, or is alone.
func (c *certificate) load() error {
	var now [2]stamp
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		now[i] = stamp{info.ModTime(), info.Size()}
	}
	if c.current != nil && now == c.seen {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.cert, c.key, err)
	}
	c.current, c.seen = &pair, now
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.current, nil
	}
	c.looked = time.Now()
	before := c.current
	err := c.load()
	switch {
	case c.log == nil:
	case err != nil:
		c.log.Error("a changed certificate is ignored, the one before stays", "error", err)
	case c.current != before:
		c.log.Info("certificate read", "file", c.cert)
	}
	return c.current, nil
}

// options make a server speak TLS on this listener, which replaces the one that it would have used.
func (c *certificate) options(ln net.Listener, log *slog.Logger) []config.Option {
	if c == nil {
		return []config.Option{server.WithListener(ln)}
	}
	c.log = log
	return []config.Option{
		server.WithListener(closingListener{ln}),
		server.WithOnAccept(func(conn net.Conn) context.Context { return conn.(*closing).ctx }),
		server.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}),
	}
}

// closingListener gives each connection a context that ends when it closes. hertz does so itself without TLS only.
type closingListener struct{ net.Listener }

func (l closingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &closing{Conn: conn, ctx: ctx, cancel: cancel}, nil
}

type closing struct {
	net.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	c.cancel()
	return c.Conn.Close()
}
