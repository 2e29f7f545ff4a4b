package service

import (
	"context"
	"time"
)

// every calls work once each d, on the caller's goroutine, until ctx ends. Calls that come due while work runs are left
// out, but for one.
func every(ctx context.Context, d time.Duration, work func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			work()
		}
	}
}
