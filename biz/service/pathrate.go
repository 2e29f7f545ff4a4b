package service

import (
	"sync/atomic"
	"time"
)

// pathRate admits a number of purchases per second, spaced evenly, with a second's worth at once after a pause. One
// atomic holds the moment up to which everything is taken.
type pathRate struct {
	now   func() time.Time
	start time.Time
	each  int64 // nanoseconds for one purchase
	taken atomic.Int64
}

func newPathRate(perSecond int, now func() time.Time) *pathRate {
	return &pathRate{now: now, start: now(), each: int64(time.Second) / int64(perSecond)}
}

// take tells whether one more fits.
func (r *pathRate) take() bool {
	now := int64(r.now().Sub(r.start))
	for {
		taken := r.taken.Load()
		next := max(taken, now-int64(time.Second)) + r.each
		if next > now {
			return false
		}
		if r.taken.CompareAndSwap(taken, next) {
			return true
		}
	}
}
