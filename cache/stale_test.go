package cache_test

import (
	"errors"
	"testing"
	"time"

	"stockade/cache"
)

// While the loader fails, what it said last is answered, without anybody waiting, until it is too old.
func TestTheLastListingStandsInWhileTheLoaderFails(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, clk := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.ListingTTLMs, cfg.StaleListingMs = 1000, 60_000 })
	remembered(t, c, tr, "demo")
	tr.fail.Store(true)
	for range 58 {
		clk.advance(time.Second)
		if got := ask(c.Listing, "demo"); got != (listing{epoch: 1}) {
			t.Fatalf("got %+v, want the last listing", got)
		}
		if got := ask(c.Refresh, "demo"); !errors.Is(got.err, errTrouble) {
			t.Fatalf("Refresh: got %+v, want the loader's error", got)
		}
	}
	if got := ask(c.Listing, "other"); !errors.Is(got.err, errTrouble) {
		t.Errorf("a SKU that was never read: got %+v", got)
	}
	clk.advance(5 * time.Second)
	if got := ask(c.Listing, "demo"); !errors.Is(got.err, errTrouble) {
		t.Errorf("after its time: got %+v, want the loader's error", got)
	}
	tr.epoch.Store(2)
	tr.fail.Store(false)
	if got := ask(c.Listing, "demo"); got != (listing{epoch: 2}) {
		t.Errorf("when the loader is back: got %+v", got)
	}
}

// Somebody reads on behind the stale answers: the truth comes back without a request that waits for it.
func TestStaleAnswersReadOn(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, clk := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.ListingTTLMs = 1000 })
	remembered(t, c, tr, "demo")
	tr.fail.Store(true)
	clk.advance(2 * time.Second)
	if got := ask(c.Listing, "demo"); got != (listing{epoch: 1}) {
		t.Fatalf("got %+v", got)
	}
	tr.epoch.Store(2)
	tr.fail.Store(false)
	eventually(t, "the new listing is answered", func() bool {
		clk.advance(2 * time.Second)
		got := ask(c.Listing, "demo")
		if got.err != nil {
			t.Fatal(got.err)
		}
		return got.epoch == 2
	})
}

// A SKU that is gone is gone, however well it is remembered.
func TestNotFoundIsNotStale(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, clk := newCatalogue(t, tr, nil)
	remembered(t, c, tr, "demo")
	tr.epoch.Store(0)
	clk.advance(2 * time.Second)
	if got := ask(c.Listing, "demo"); got.err == nil {
		t.Fatalf("got %+v, want not found", got)
	}
	tr.fail.Store(true)
	clk.advance(2 * time.Second)
	eventually(t, "the SKU is not answered any more", func() bool { return ask(c.Listing, "demo").err != nil })
}
