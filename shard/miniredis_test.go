package shard_test

import (
	"log/slog"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"stockade/shard"
	"stockade/shard/shardtest"
)

func TestMain(m *testing.M) {
	shard.LogTo(slog.New(slog.DiscardHandler)) // some tests have no server on purpose
	goleak.VerifyTestMain(m)
}

func TestMiniredis(t *testing.T) {
	shardtest.Run(t, miniredis.RunT(t).Addr())
}
