package router

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/config"
)

// certificateEvery is how often the files of a certificate are looked at.
const certificateEvery = time.Second

// certificate is that of one listener. A changed pair of files is taken over by the next handshake; a pair that cannot be
// used is logged, and the one before it stays.
type certificate struct {
	cert, key string // paths
	current   atomic.Pointer[tls.Certificate]
	log       *slog.Logger // nil until the servers are made

	// Of the looks, which follow each other.
	seen    [2]stamp
	trouble string // with the last look; empty: none
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
	_, err := c.load()
	return c, err
}

// load reads the pair if it changed.
func (c *certificate) load() (changed bool, err error) {
	var now [2]stamp
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		now[i] = stamp{info.ModTime(), info.Size()}
	}
	if now == c.seen {
		return false, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return false, fmt.Errorf("%s and %s: %w", c.cert, c.key, err)
	}
	c.current.Store(&pair)
	c.seen = now
	return true, nil
}

// follow looks at the files until ended closes. Handshakes never do: they would wait for the disk.
func (c *certificate) follow(ended <-chan struct{}) {
	if c == nil {
		return
	}
	tick := time.NewTicker(certificateEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			c.look()
		}
	}
}

// look takes a changed pair over. Trouble is logged when it begins and when it changes, not at every look.
func (c *certificate) look() {
	changed, err := c.load()
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	switch {
	case changed:
		c.log.Info("certificate read", "file", c.cert)
	case err != nil && trouble != c.trouble:
		c.log.Error("a changed certificate is ignored, the one before stays", "error", err)
	}
	c.trouble = trouble
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// options make a server speak TLS on this listener, which replaces the one that it would have used.
func (c *certificate) options(ln net.Listener, cfg Config, log *slog.Logger) []config.Option {
	if c == nil {
		return []config.Option{server.WithListener(ln)}
	}
	c.log = log
	return []config.Option{
		server.WithListener(&closingListener{
			Listener: ln, readTimeout: ms(cfg.ReadTimeoutMs), writeTimeout: ms(cfg.WriteTimeoutMs), log: log,
		}),
		server.WithOnAccept(func(conn net.Conn) context.Context { return conn.(*closing).ctx }),
		server.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}),
	}
}
