// Package cache is what a node remembers between requests: listings, empty shares with their winners, and the orders it
// just sold. Everything in it is bounded, may be lost at any time, and is never the truth.
package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"stockade/biz/sale"
)

// Numbers of the catalogue.
const (
	floorStripes    = 1 << 14 // 128 KiB; SKUs that share a stripe are only read more often than they need to be
	jitterParts     = 5       // a listing's lifetime is shortened by up to 1/5
	counterPerItem  = 10      // what ristretto recommends for its estimate of use
	ristrettoBuffer = 64      // likewise, for its buffer of reads
)

// Loader reads a listing from where the truth is; sale.ErrNotFound for an unknown SKU. It returns when ctx ends.
type Loader func(ctx context.Context, sku string) (sale.Listing, error)

// Catalogue answers listings from memory and reads each SKU with at most one read at a time.
//
// Every read has a number, and so has every Forget and Refresh, from one counter. A remembered listing is good only if
// its read has a higher number than the last Forget of its SKU: so a read that was under way, and saw the old state,
// cannot bring it back, whatever becomes of it in ristretto.
//
// When a read fails, the listing that was read last is answered for StaleListingMs from its read on: a sale goes on while
// the loader's server is away. Then each SKU is still read anew all the time, and nobody waits for that.
type Catalogue struct {
	cfg     Config
	load    Loader
	clock   stopwatch
	known   *ristretto.Cache[string, *entry]
	unknown []atomic.Pointer[entry] // by hash; a newer entry takes the place of an older one
	seed    maphash.Seed
	counter atomic.Uint64
	floors  [floorStripes]atomic.Uint64 // by hash: number of the last Forget
	floor   atomic.Uint64               // number of the last Forget of all
	reads   *reads
}

// entry is the outcome of one read.
type entry struct {
	sku     string
	listing sale.Listing // with an error: the last one that was read, if stale
	err     error
	number  uint64
	since   int64 // when the read of the listing began, by the stopwatch
	until   int64 // how long the entry is good
	stale   bool  // the read failed; listing is what an earlier one said
}

// answer is the entry as Listing tells it.
func (e *entry) answer() (sale.Listing, error) {
	if e.stale {
		return e.listing, nil
	}
	return e.listing, e.err
}

// NewCatalogue returns an empty catalogue. now is its clock. Close it, after its callers are gone. The error is the one
// of Config.Validate.
func NewCatalogue(cfg Config, load Loader, now func() time.Time) (*Catalogue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	known, err := ristretto.NewCache(&ristretto.Config[string, *entry]{
		NumCounters:        int64(cfg.MaxListings) * counterPerItem,
		MaxCost:            int64(cfg.MaxListings),
		BufferItems:        ristrettoBuffer,
		IgnoreInternalCost: true, // else the bookkeeping counts and few listings fit
	})
	if err != nil {
		return nil, err
	}
	c := &Catalogue{
		cfg: cfg, load: load, clock: newStopwatch(now), known: known,
		unknown: make([]atomic.Pointer[entry], cfg.MaxNotFound),
		seed:    maphash.MakeSeed(),
	}
	c.reads = newReads(cfg.MaxLoads, &c.counter, c.fetch)
	return c, nil
}

// Listing answers from memory if it can. Otherwise it reads, together with whoever wants the same SKU, and returns early
// with ctx's error if ctx ends first; the read goes on for the others.
//
// Errors: sale.ErrNotFound; sale.ErrQueueFull when too many SKUs are being read; sale.ErrShuttingDown after Close;
// ctx's; the loader's, which are not remembered.
func (c *Catalogue) Listing(ctx context.Context, sku string) (sale.Listing, error) {
	hash := maphash.String(c.seed, sku)
	if e := c.recall(sku, hash); e != nil {
		return e.answer()
	}
	e, err := c.read(ctx, sku, hash)
	if err != nil {
		return sale.Listing{}, err
	}
	return e.answer()
}

// Refresh forgets the SKU, then reads it: its answer comes from a read that began after the call. Callers at the same
// time share one read, and a SKU that is refreshed all the time is read once after the other, never twice at once. When
// that read fails, its error is the answer, whatever is remembered. Errors are those of Listing.
func (c *Catalogue) Refresh(ctx context.Context, sku string) (sale.Listing, error) {
	hash := maphash.String(c.seed, sku)
	c.raise(c.stripe(hash))
	e, err := c.read(ctx, sku, hash)
	switch {
	case err != nil:
		return sale.Listing{}, err
	case e.err != nil:
		return sale.Listing{}, e.err
	}
	return e.listing, nil
}

// Forget drops one listing, or all with an empty id. No later answer comes from a read that began before.
func (c *Catalogue) Forget(sku string) {
	if sku == "" {
		c.raise(&c.floor)
	} else {
		c.raise(c.stripe(maphash.String(c.seed, sku)))
	}
}

// raise makes everything that was read until now no good for those who look at this floor.
func (c *Catalogue) raise(floor *atomic.Uint64) {
	number := c.counter.Add(1)
	for {
		last := floor.Load()
		if last >= number || floor.CompareAndSwap(last, number) {
			return
		}
	}
}

// Remembered is the listing that was read last, however long ago, also when it was forgotten since. It reads nothing.
func (c *Catalogue) Remembered(sku string) (listing sale.Listing, known bool) {
	e, known := c.known.Get(sku)
	if !known {
		return sale.Listing{}, false
	}
	return e.listing, true
}

// Close ends reads under way and waits for them. Listing must not be called at the same time: ristretto, which goes
// last, does not bear it.
func (c *Catalogue) Close() {
	c.reads.close()
	c.known.Close()
}

// recall returns what is remembered and still good, or nil.
func (c *Catalogue) recall(sku string, hash uint64) *entry {
	floor, now := c.floorOf(hash), c.clock.elapsed()
	if e, ok := c.known.Get(sku); ok {
		if e.good(floor, now) {
			return e
		}
		if e.stale && e.number > floor && c.usable(e, now) {
			_, _ = c.reads.join(sku, floor) // when it succeeds, its listing is remembered
			return e
		}
	}
	if e := c.place(hash).Load(); e != nil && e.sku == sku && e.good(floor, now) {
		return e
	}
	return nil
}

// usable tells whether the listing of an entry may still stand in for one that cannot be read.
func (c *Catalogue) usable(e *entry, now int64) bool {
	return now-e.since < int64(ms(c.cfg.StaleListingMs))
}

func (e *entry) good(floor uint64, now int64) bool { return e.number > floor && now < e.until }

func (c *Catalogue) stripe(hash uint64) *atomic.Uint64 { return &c.floors[hash%floorStripes] }

func (c *Catalogue) floorOf(hash uint64) uint64 { return max(c.stripe(hash).Load(), c.floor.Load()) }

func (c *Catalogue) place(hash uint64) *atomic.Pointer[entry] {
	return &c.unknown[hash%uint64(len(c.unknown))]
}

// read waits for a read that began after the SKU was last forgotten.
func (c *Catalogue) read(ctx context.Context, sku string, hash uint64) (*entry, error) {
	r, err := c.reads.join(sku, c.floorOf(hash))
	if err != nil {
		return nil, err
	}
	select {
	case <-r.done:
		return r.entry, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch asks the loader and remembers what it said. After trouble it remembers the listing that was read last.
func (c *Catalogue) fetch(ctx context.Context, sku string, number uint64) *entry {
	ctx, cancel := context.WithTimeout(ctx, ms(c.cfg.LoadTimeoutMs))
	defer cancel()
	began := c.clock.elapsed()
	e := &entry{sku: sku, number: number, since: began, until: began}
	e.listing, e.err = c.load(ctx, sku)
	ttl := int64(ms(c.cfg.ListingTTLMs))
	switch {
	case e.err == nil:
		e.until += ttl - rand.Int64N(ttl/jitterParts)
		c.known.Set(sku, e, 1)
		c.known.Wait() // Set alone is done some time later, and another read would be made meanwhile
	case errors.Is(e.err, sale.ErrNotFound):
		e.until += int64(ms(c.cfg.NotFoundTTLMs))
		c.place(maphash.String(c.seed, sku)).Store(e)
		if _, ok := c.known.Get(sku); ok {
			c.known.Del(sku)
		}
	default:
		now := c.clock.elapsed()
		if last, ok := c.known.Get(sku); ok && c.usable(last, now) {
			e.listing, e.since, e.stale, e.until = last.listing, last.since, true, now+ttl
			c.known.Set(sku, e, 1)
			c.known.Wait() // Set alone is done some time later, and another read would be made meanwhile
		}
	}
	return e
}
