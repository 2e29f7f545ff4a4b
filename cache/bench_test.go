package cache_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cache"
)

func BenchmarkListing(b *testing.B) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, err := cache.NewCatalogue(cache.DefaultConfig(), tr.load, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Listing(ctx, "demo"); err != nil {
			b.Fatal(err)
		}
	}
}

// benchFlags is a sold-out SKU of 32 slots with 300 winners in each share.
func benchFlags(b *testing.B) *cache.Flags {
	b.Helper()
	cfg := cache.DefaultConfig()
	f, err := cache.NewFlags(cfg, func() func() time.Time { // looks at the clock like in a node, but stays within a lifetime
		start := time.Now()
		return func() time.Time { return start.Add(time.Since(start) % time.Millisecond) }
	}())
	if err != nil {
		b.Fatal(err)
	}
	hashes := make([]uint64, 300)
	for i := range hashes {
		hashes[i] = uint64(i) << 50
	}
	for _, share := range sale.Shares(sale.MaxSlots) {
		f.Note(sku, figures(share, 0, 10))
		f.Winners(sku, sale.Winners{Share: share, Epoch: epoch, Changes: 10, Hashes: slices.Clone(hashes)})
	}
	return f
}

func BenchmarkStandingFlaggedOut(b *testing.B) {
	f := benchFlags(b)
	b.ReportAllocs()
	hash := uint64(0)
	for b.Loop() {
		hash += 0x9e3779b97f4a7c15
		if f.Standing(sku, epoch, sale.MaxSlots, hash, 1, true) != sale.FlaggedOut {
			b.Fatal("not flagged")
		}
	}
}

func BenchmarkStandingParallel(b *testing.B) {
	f := benchFlags(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for hash := uint64(1); pb.Next(); hash += 0x9e3779b97f4a7c15 {
			f.Standing(sku, epoch, sale.MaxSlots, hash, 1, true)
		}
	})
}

func BenchmarkStandingAskGate(b *testing.B) {
	f := benchFlags(b)
	b.ReportAllocs()
	for b.Loop() {
		f.Standing("another", epoch, sale.MaxSlots, 7, 1, true)
	}
}

func BenchmarkNoteNews(b *testing.B) {
	f := benchFlags(b)
	b.ReportAllocs()
	changes := int64(10)
	for b.Loop() {
		changes++
		f.Note(sku, figures(home, 5, changes))
	}
}

func BenchmarkNoteSame(b *testing.B) {
	f := benchFlags(b)
	b.ReportAllocs()
	for b.Loop() {
		f.Note(sku, figures(home, 0, 10))
	}
}

func BenchmarkRecentHas(b *testing.B) {
	r := newRecent(b, 100_000)
	for i := range 1000 {
		r.Add(orderID(i))
	}
	id := orderID(500)
	b.ReportAllocs()
	for b.Loop() {
		r.Has(id)
	}
}
