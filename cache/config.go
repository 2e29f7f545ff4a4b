package cache

import (
	"fmt"
	"time"

	"stockade/biz/sale"
)

// Config bounds what a node remembers. Times are milliseconds.
type Config struct {
	// ListingTTLMs is how old a listing answered from memory may be, counted from the start of its read. Each listing
	// lives for 80 to 100 % of it, so that those read together are not read again together.
	ListingTTLMs int `yaml:"listingTtlMs"`
	// StaleListingMs is how old a listing may be that is answered because it cannot be read anew: how long a sale goes on
	// under durability journal while MySQL is away.
	StaleListingMs int `yaml:"staleListingMs"`
	// NotFoundTTLMs is how long an unknown SKU is remembered as unknown. A hint ends it earlier.
	NotFoundTTLMs int `yaml:"notFoundTtlMs"`
	// LoadTimeoutMs bounds one read of a listing. A caller may have to wait for two: the one that was under way when it
	// came, and its own.
	LoadTimeoutMs int `yaml:"loadTimeoutMs"`
	// MaxLoads is how many SKUs may be read at the same time; a read beyond it is refused as sale.ErrQueueFull.
	MaxLoads int `yaml:"maxLoads"`
	// MaxListings is how many listings are remembered.
	MaxListings int `yaml:"maxListings"`
	// MaxNotFound is how many unknown SKUs are remembered.
	MaxNotFound int `yaml:"maxNotFound"`
	// FlagLifetimeMs is how long a share's figures count. What was true for a share may be told to buyers for that long
	// after it changed, so it stays below the two seconds that the design allows for a false SOLD_OUT; and it stays
	// above the second between two readings of the shares, so that flags do not lapse in between.
	FlagLifetimeMs int `yaml:"flagLifetimeMs"`
	// MaxFlaggedSKUs is how many SKUs have flags at the same time. Each takes up to 2 KB, beside its winners.
	MaxFlaggedSKUs int `yaml:"maxFlaggedSkus"`
	// MaxWinners is how many winners of all SKUs together are remembered, 8 bytes each. A share whose winners do not
	// fit has no flag.
	MaxWinners int `yaml:"maxWinners"`
	// MaxRecent is how many orders won on this node are remembered, about 60 bytes each. A winner's retry usually comes
	// within seconds.
	MaxRecent int `yaml:"maxRecent"`
}

// DefaultConfig returns what a node starts with. The times for listings and flags are the design's. The counts are for
// a shop with ten thousand SKUs in one sale, and come to about 90 MiB when everything is full.
func DefaultConfig() Config {
	return Config{
		ListingTTLMs:   1000,
		StaleListingMs: 600_000,
		NotFoundTTLMs:  1000,
		LoadTimeoutMs:  500,
		MaxLoads:       256,
		MaxListings:    10_000,
		MaxNotFound:    4096,
		FlagLifetimeMs: 1500,
		MaxFlaggedSKUs: 20_000,
		MaxWinners:     4_000_000,
		MaxRecent:      100_000,
	}
}

// Validate returns a *sale.InputError for the first setting that is out of range.
func (c Config) Validate() error {
	for _, s := range []struct {
		name          string
		value, lo, hi int
	}{
		{"listingTtlMs", c.ListingTTLMs, 10, 60_000},
		{"staleListingMs", c.StaleListingMs, 1, 86_400_000},
		{"notFoundTtlMs", c.NotFoundTTLMs, 10, 60_000},
		{"loadTimeoutMs", c.LoadTimeoutMs, 10, 60_000},
		{"maxLoads", c.MaxLoads, 1, 100_000},
		{"maxListings", c.MaxListings, 1, 10_000_000},
		{"maxNotFound", c.MaxNotFound, 1, 10_000_000},
		{"flagLifetimeMs", c.FlagLifetimeMs, 100, 1900},
		{"maxFlaggedSkus", c.MaxFlaggedSKUs, 1, 100_000},
		{"maxWinners", c.MaxWinners, 1, 1_000_000_000},
		{"maxRecent", c.MaxRecent, 1, 100_000_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return sale.BadInput(s.name, fmt.Sprintf("must be a whole number from %d to %d", s.lo, s.hi))
		}
	}
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// stopwatch reads a clock as nanoseconds since its start, which fit into an atomic.
type stopwatch struct {
	now   func() time.Time
	start time.Time
}

func newStopwatch(now func() time.Time) stopwatch { return stopwatch{now, now()} }

func (s stopwatch) elapsed() int64 { return int64(s.now().Sub(s.start)) }
