//go:build services

package shard_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/shard/shardtest"
)

// redisAddress is the server of the tests; a test without it fails.
func redisAddress(t testing.TB) string {
	address := os.Getenv("STOCKADE_TEST_REDIS")
	if address == "" {
		t.Fatal("STOCKADE_TEST_REDIS is not set: host:port of a Redis for tests")
	}
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatalf("STOCKADE_TEST_REDIS=%s does not answer: %v", address, err)
	}
	return address
}

func TestRedis(t *testing.T) { shardtest.Run(t, redisAddress(t)) }
