package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/network"
)

const (
	sweepEvery = 20 * time.Millisecond
	// idleAfter is how long a connection must have been without a request before a stop closes it. hertz writes an
	// answer after the handlers have returned, so a connection that looks idle may still be getting one.
	idleAfter = 100 * time.Millisecond
)

// connections lets a stop close connections that wait for a next request. hertz waits for them, as for busy ones, until
// its own timeout.
type connections struct {
	started time.Time

	mu   sync.Mutex
	open map[*connection]struct{}
}

type connection struct {
	conn network.Conn
	// idleSince is when the last request ended, in nanoseconds since connections.started; 0 while one is served.
	idleSince atomic.Int64
}

type connectionKey struct{}

func newConnections() *connections {
	return &connections{started: time.Now(), open: map[*connection]struct{}{}}
}

func (k *connections) elapsed() int64 { return int64(time.Since(k.started)) }

// opened notes a new connection until its context ends, which it does when the connection closes.
func (k *connections) opened(ctx context.Context, conn network.Conn) context.Context {
	one := &connection{conn: conn}
	one.idleSince.Store(k.elapsed())
	k.mu.Lock()
	k.open[one] = struct{}{}
	k.mu.Unlock()
	context.AfterFunc(ctx, func() {
		k.mu.Lock()
		delete(k.open, one)
		k.mu.Unlock()
	})
	return context.WithValue(ctx, connectionKey{}, one)
}

// busy marks the connection of a request.
func (k *connections) busy(ctx context.Context, c *app.RequestContext) {
	one, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		c.Next(ctx)
		return
	}
	one.idleSince.Store(0)
	defer func() { one.idleSince.Store(k.elapsed()) }()
	c.Next(ctx)
}

// closeIdle closes idle connections until ctx ends.
func (k *connections) closeIdle(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, one := range k.idle() {
			_ = one.conn.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *connections) idle() []*connection {
	k.mu.Lock()
	defer k.mu.Unlock()
	var idle []*connection
	for one := range k.open {
		if since := one.idleSince.Load(); since > 0 && k.elapsed()-since >= int64(idleAfter) {
			idle = append(idle, one)
		}
	}
	return idle
}
