//go:build !race

package service_test

import (
	"testing"
	"time"

	"stockade/biz/sale"
)

// Bounds of time are for the product, not for the race detector, under which it is many times as slow.
func TestManyOrdersExpireAtOnce(t *testing.T) {
	l := newLab(t)
	manyOrdersExpire(t, l, 10_000, sale.DefaultWindow, 2*time.Second, func(expires time.Time) {
		l.clock.advance(expires.Sub(l.clock.Now()) + time.Millisecond)
	})
}
