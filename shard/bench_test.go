//go:build services

package shard_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/shard"
)

const benchSKU = "bench"

// BenchmarkAdmit compares lanes with one call per request: the same script, the same pool size, one Redis, all requests
// admitted, buyers spread over 32 slots.
func BenchmarkAdmit(b *testing.B) {
	for _, buyers := range []int{64, 512} {
		b.Run(fmt.Sprintf("lanes/buyers=%d", buyers), func(b *testing.B) {
			gate := layBench(b)
			benchAdmit(b, buyers, func(ctx context.Context, r sale.AdmitRequest) (sale.Verdict, error) {
				a, err := gate.Admit(ctx, r)
				return a.Verdict, err
			})
		})
		b.Run(fmt.Sprintf("single/buyers=%d", buyers), func(b *testing.B) {
			layBench(b)
			benchAdmit(b, buyers, oneByOne(b))
		})
	}
}

func benchPrefix(b *testing.B) string { return "stockade-bench-" + strconv.Itoa(os.Getpid()) }

// layBench lays out shares that no benchmark can empty, without the orders of the benchmark before.
func layBench(b *testing.B) *shard.Gate {
	cfg := shard.DefaultConfig()
	cfg.Addresses = []string{redisAddress(b)}
	cfg.Prefix = benchPrefix(b)
	cfg.IOTimeoutMs, cfg.FlushTimeoutMs = 10_000, 10_000
	ctx := b.Context()
	gate, err := shard.Open(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { gate.Close() })
	epoch := time.Now().UnixMilli()
	benchEpoch.Store(epoch)
	for _, share := range sale.Shares(sale.MaxSlots) {
		_, err1 := gate.Seal(ctx, benchSKU, share, epoch, 1)
		err2 := gate.Wipe(ctx, benchSKU, share, epoch)
		err3 := gate.OpenAll(ctx, benchSKU, []sale.Share{share}, epoch, []int64{sale.MaxTotal})
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Cleanup(func() {
		client := redis.NewClient(&redis.Options{Addr: cfg.Addresses[0]})
		defer client.Close()
		for _, share := range sale.Shares(sale.MaxSlots) {
			for _, k := range shard.KeysOf(benchPrefix(b), benchSKU, share) {
				client.Unlink(context.Background(), k)
			}
		}
	})
	return gate
}

var benchEpoch, benchIDs atomic.Int64

func benchAdmit(b *testing.B, buyers int, admit func(context.Context, sale.AdmitRequest) (sale.Verdict, error)) {
	ctx := b.Context()
	epoch := benchEpoch.Load()
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range buyers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				n := benchIDs.Add(1)
				buyer := "buyer-" + strconv.FormatInt(n, 10)
				r := sale.AdmitRequest{
					SKU: benchSKU, Share: sale.Home(xxhash.Sum64String(buyer), sale.MaxSlots), Epoch: epoch,
					Buyer: buyer, Quantity: 1, Limit: 2,
				}
				binary.BigEndian.PutUint64(r.Order[8:], uint64(n))
				if v, err := admit(ctx, r); err != nil || v != sale.Admitted {
					b.Errorf("verdict %d, error %v", v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkCredit gives 10 000 orders back in one call, over all shares.
func BenchmarkCredit(b *testing.B) {
	gate := layBench(b)
	const orders = 10_000
	credits := make([]sale.Credit, orders)
	shares := sale.Shares(sale.MaxSlots)
	b.ReportAllocs()
	for b.Loop() {
		for i := range credits {
			n := benchIDs.Add(1)
			credits[i] = sale.Credit{
				SKU: benchSKU, Share: shares[i%len(shares)], Epoch: benchEpoch.Load(), Quantity: 1,
				Buyer: "buyer-" + strconv.FormatInt(n, 10),
			}
			binary.BigEndian.PutUint64(credits[i].Order[8:], uint64(n))
		}
		applied, err := gate.Credit(b.Context(), credits)
		if err != nil || slices.Contains(applied, false) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*orders/b.Elapsed().Seconds(), "orders/s")
}

// oneByOne is the usual client: one EVALSHA for each request.
func oneByOne(b *testing.B) func(context.Context, sale.AdmitRequest) (sale.Verdict, error) {
	client := redis.NewClient(&redis.Options{Addr: redisAddress(b), PoolSize: shard.DefaultConfig().PoolSize})
	b.Cleanup(func() { client.Close() })
	sha, err := client.ScriptLoad(b.Context(), shard.AdmitSource()).Result()
	if err != nil {
		b.Fatal(err)
	}
	keys := map[sale.Share][]string{}
	for _, share := range sale.Shares(sale.MaxSlots) {
		keys[share] = shard.KeysOf(benchPrefix(b), benchSKU, share)
	}
	return func(ctx context.Context, r sale.AdmitRequest) (sale.Verdict, error) {
		reply, err := client.EvalSha(ctx, sha, keys[r.Share], r.Epoch, shard.PackAdmit(r)).Int64Slice()
		if err != nil || len(reply) < 3 {
			return 0, err
		}
		return sale.Verdict(reply[2]), nil
	}
}
