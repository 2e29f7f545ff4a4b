//go:build services && !race

package service_test

import (
	"testing"
	"time"
)

func TestManyOrdersExpireAtOnceReal(t *testing.T) {
	manyOrdersExpire(t, newRealLab(t), 10_000, 2*time.Second, time.Second, func(time.Time) {})
}
