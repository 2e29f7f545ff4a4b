package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"stockade/limiter"
)

func benchLimiter(b *testing.B) *limiter.Limiter {
	b.Helper()
	cfg := limiter.DefaultConfig()
	cfg.GlobalPerSecond, cfg.GlobalBurst = 1_000_000, 1_000_000
	l, err := limiter.New(cfg, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkGlobal(b *testing.B) {
	l := benchLimiter(b)
	b.ReportAllocs()
	for b.Loop() {
		l.Global()
	}
}

func BenchmarkAddress(b *testing.B) {
	l, addr := benchLimiter(b), netip.MustParseAddr("2001:db8::1")
	b.ReportAllocs()
	for b.Loop() {
		l.Address(addr)
	}
}

// BenchmarkBuyerRefused is one buyer over the limit, the cheapest attack.
func BenchmarkBuyerRefused(b *testing.B) {
	l := benchLimiter(b)
	b.ReportAllocs()
	for b.Loop() {
		l.Buyer("u-1")
	}
}

// BenchmarkBuyerAdmitted walks through more buyers than any processor cache holds buckets.
func BenchmarkBuyerAdmitted(b *testing.B) {
	l := benchLimiter(b)
	buyers := make([]string, 1<<18)
	for i := range buyers {
		buyers[i] = fmt.Sprint("u-", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	i := rand.IntN(len(buyers))
	for b.Loop() {
		i = (i + 1) & (len(buyers) - 1)
		l.Buyer(buyers[i])
	}
}

func BenchmarkBuyerParallel(b *testing.B) {
	l := benchLimiter(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		id := fmt.Sprint("u-", rand.Uint64())
		for pb.Next() {
			l.Buyer(id)
		}
	})
}
