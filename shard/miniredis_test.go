package shard_test

import (
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/goleak"

	"stockade/shard"
	"stockade/shard/shardtest"
)

func TestMain(m *testing.M) {
	shard.LogTo(slog.New(slog.DiscardHandler)) // some tests have no server on purpose
	goleak.VerifyTestMain(m)
}

// TestMiniredis also checks what miniredis does not: that all keys of a script have one hash tag.
func TestMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	var seen atomic.Int64
	m.Server().SetPreHook(func(_ *server.Peer, cmd string, args ...string) bool {
		if cmd != "EVALSHA" && cmd != "EVAL" {
			return false
		}
		seen.Add(1)
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 || n > len(args)-2 {
			t.Errorf("%s with %q keys", cmd, args[1])
			return false
		}
		for _, key := range args[2 : 2+n] {
			if hashTag(key) == "" || hashTag(key) != hashTag(args[2]) {
				t.Errorf("keys of one script have several tags: %q", args[2:2+n])
			}
		}
		return false
	})
	shardtest.Run(t, m.Addr())
	if seen.Load() == 0 {
		t.Error("no script was seen")
	}
}

// hashTag is what Redis Cluster hashes of a key: the part between the first { and the next }.
func hashTag(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

func TestMiniredisCluster(t *testing.T) { shardtest.RunCluster(t, miniredis.RunT(t).Addr()) }
