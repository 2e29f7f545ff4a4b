package store

import (
	"testing"
	"time"
)

func TestHostClock(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 123_987_654, time.FixedZone("X", 3600))
	c := hostClock{read: func() time.Time { return at }}
	want := time.Date(2026, 5, 1, 11, 0, 0, 123_000_000, time.UTC)
	if got := c.now(); got != want {
		t.Errorf("now %v, want %v", got, want)
	}
}

// The server's time counts, however far this node's clock is off.
func TestServerClock(t *testing.T) {
	c := new(serverClock)
	server := time.Date(2031, 1, 1, 0, 0, 0, 0, time.FixedZone("Y", -3600))
	for range 2 {
		asked := time.Now()
		c.sampled(server, asked)
		first := c.now()
		second := c.now()
		most := time.Since(asked)
		if first.Location() != time.UTC || first.Truncate(time.Millisecond) != first {
			t.Errorf("now %v is not UTC in whole milliseconds", first)
		}
		if first.Before(server) || second.Before(first) || second.Sub(server) > most+time.Millisecond {
			t.Errorf("now %v, then %v, within %v of %v", first, second, most, server)
		}
		server = server.Add(-time.Hour) // the server was set back
	}
}

func TestMillis(t *testing.T) {
	if millis(time.Time{}) != 0 || !fromMillis(0).IsZero() {
		t.Error("no time is not kept")
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 5e6, time.UTC)
	if got := fromMillis(millis(at)); got != at {
		t.Errorf("%v became %v", at, got)
	}
}
