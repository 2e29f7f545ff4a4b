package store

import (
	"sync/atomic"
	"time"
)

// clock tells the time that goes into rows: UTC, whole milliseconds.
type clock interface {
	now() time.Time
	// sampled takes in the server's clock as read by a ping that was sent at asked and answered just now.
	sampled(server, asked time.Time)
}

// hostClock is the clock of a database that lives in this process.
type hostClock struct{ read func() time.Time }

func (c hostClock) now() time.Time { return c.read().UTC().Truncate(time.Millisecond) }

func (hostClock) sampled(_, _ time.Time) {}

// serverClock is the server's clock at the last ping plus the monotonic time since, so that this node's wall clock may
// jump without any row noticing.
type serverClock struct{ last atomic.Pointer[sample] }

type sample struct {
	server time.Time
	at     time.Time // with Go's monotonic reading
}

func (c *serverClock) now() time.Time {
	s := c.last.Load()
	if s == nil {
		panic("store: the clock was read before Open had pinged the server")
	}
	return s.server.Add(time.Since(s.at)).UTC().Truncate(time.Millisecond)
}

func (c *serverClock) sampled(server, asked time.Time) {
	at := time.Now()
	c.last.Store(&sample{server: server.Add(at.Sub(asked) / 2), at: at})
}

// millis is a time as rows hold it; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fromMillis reads a row's time; 0 is the zero time.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
