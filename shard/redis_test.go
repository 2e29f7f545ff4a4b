//go:build services

package shard_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/shard"
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

func TestRedisTellsItsIdentity(t *testing.T) {
	gate := openGate(t)
	if id, err := gate.Identity(t.Context()); err != nil || len(id) != 32 {
		t.Fatalf("identity %q, %v", id, err)
	}
}

// TestMemoryOfASoldUnit bounds what Redis keeps for a unit that was sold to a buyer with a UUID for an id.
func TestMemoryOfASoldUnit(t *testing.T) {
	const units, limit = 5000, 250 // bytes for each unit
	gate := openGate(t)
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: redisAddress(t), Protocol: 2, DisableIdentity: true})
	keys := shard.KeysOf(testPrefix, "memory", 0)
	t.Cleanup(func() {
		client.Unlink(context.Background(), keys...)
		client.Close()
	})
	if _, err := gate.Seal(ctx, "memory", 0, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := gate.OpenAll(ctx, "memory", []sale.Share{0}, 1, []int64{units}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 50 {
		wg.Go(func() {
			for i := range units / 50 {
				r := sale.AdmitRequest{SKU: "memory", Epoch: 1, Quantity: 1, Limit: 1}
				binary.BigEndian.PutUint32(r.Order[:], uint32(worker))
				binary.BigEndian.PutUint32(r.Order[12:], uint32(i))
				r.Buyer = r.Order.String()
				a, err := gate.Admit(ctx, r)
				if err == nil {
					err = gate.Settle(ctx, sale.Settlement{
						SKU: "memory", Order: r.Order, Buyer: r.Buyer, Quantity: 1, Token: a.Token, Kept: true,
					})
				}
				if err != nil || a.Verdict != sale.Admitted {
					t.Errorf("%+v, %v", a, err)
					return
				}
			}
		})
	}
	wg.Wait()
	var bytes int64
	for _, key := range keys {
		n, err := client.MemoryUsage(ctx, key, 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		bytes += n
	}
	t.Logf("%d bytes for each of %d units", bytes/units, units)
	if bytes == 0 || bytes/units > limit {
		t.Fatalf("%d bytes for each unit, at most %d are allowed", bytes/units, limit)
	}
}

var testPrefix = fmt.Sprintf("shardtest-%d", time.Now().UnixNano())

func openGate(t *testing.T) *shard.Gate {
	cfg := shard.DefaultConfig()
	cfg.Addresses = []string{redisAddress(t)}
	cfg.Prefix = testPrefix
	cfg.IOTimeoutMs, cfg.FlushTimeoutMs, cfg.PoolTimeoutMs = 20_000, 20_000, 20_000
	gate, err := shard.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	return gate
}
