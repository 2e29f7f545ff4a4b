package shard

import (
	"fmt"
	"sync"
	"testing"

	"stockade/biz/sale"
)

func TestKeyringIsBounded(t *testing.T) {
	const size = 100
	r := newKeyring("p", size)
	find := func(sku string) *keys {
		t.Helper()
		k, err := r.of(sku, 0)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	hot := find("hot")
	for i := range 10 * size {
		find(fmt.Sprint("s", i))
		if find("hot") != hot {
			t.Fatalf("the SKU in use was forgotten after %d others", i)
		}
		if n := r.skus.Len(); n > size {
			t.Fatalf("%d SKUs remembered", n)
		}
	}
	for _, bad := range []sale.Share{-2, sale.MaxSlots} {
		if _, err := r.of("s", bad); err == nil {
			t.Fatalf("share %d has keys", bad)
		}
	}
	if _, err := r.of("a{b}", 0); err == nil {
		t.Fatal("an impossible SKU has keys")
	}
}

// TestKeyringGivesAllTheSameKeys asks from many sides at once: calls for a share share a flush only by the same keys.
func TestKeyringGivesAllTheSameKeys(t *testing.T) {
	r := newKeyring("p", 10)
	var wg sync.WaitGroup
	found := make([]*keys, 64)
	for i := range found {
		wg.Go(func() { found[i], _ = r.of("demo", sale.Reserve) })
	}
	wg.Wait()
	for _, k := range found {
		if k == nil || k != found[0] {
			t.Fatalf("keys %p and %p", found[0], k)
		}
	}
}

func TestKnownKeysAreFoundWithoutAllocation(t *testing.T) {
	r, skus := newKeyring("p", maxCachedSKUs), manySKUs(10_000)
	for _, sku := range skus {
		if _, err := r.of(sku, 3); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	if n := testing.AllocsPerRun(20_000, func() {
		_, _ = r.of(skus[i%len(skus)], 3)
		i++
	}); n != 0 {
		t.Fatalf("%v allocations for each look-up among %d SKUs", n, len(skus))
	}
}

func manySKUs(n int) []string {
	skus := make([]string, n)
	for i := range skus {
		skus[i] = fmt.Sprintf("sku-%d", i)
	}
	return skus
}

// BenchmarkKeys looks shares up from all processors, for one hot SKU and for many.
func BenchmarkKeys(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("skus=%d", n), func(b *testing.B) {
			r, skus := newKeyring("p", maxCachedSKUs), manySKUs(n)
			for _, sku := range skus {
				for share := range sale.Share(2) {
					_, _ = r.of(sku, share)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := r.of(skus[i%n], sale.Share(i%2)); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
