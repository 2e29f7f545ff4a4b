package shard_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"stockade/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMiniredis(t *testing.T) {
	shardtest.Run(t, miniredis.RunT(t).Addr())
}
