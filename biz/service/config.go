package service

import (
	"fmt"
	"time"
)

// Config bounds the use cases. Times are milliseconds.
type Config struct {
	// PurchaseTimeoutMs is how long a purchase may take in all before the answer is BUSY.
	PurchaseTimeoutMs int `yaml:"purchaseTimeoutMs"`
	// ReadTimeoutMs is how long a buyer's look at orders or stock may take before the answer is BUSY.
	ReadTimeoutMs int `yaml:"readTimeoutMs"`
	// ReshareWaitMs is how long a purchase waits for a reshare to end before the answer is BUSY.
	ReshareWaitMs int `yaml:"reshareWaitMs"`
	// WriterQueue is how many admitted purchases may wait for a promise; one more is BUSY.
	WriterQueue int `yaml:"writerQueue"`
	// WriterGroup is how many purchases one promise decides at most. At 500 rows a commit a durable MariaDB on one
	// machine promised 70 000 units per second, at 20 rows 22 000.
	WriterGroup int `yaml:"writerGroup"`
	// Writers is how many promises run at the same time. Two keep MySQL busy; more wait for the same hot row.
	Writers int `yaml:"writers"`
	// PromiseTimeoutMs bounds one promise. It stays below JournalAgeMs, so that the journal sweeper seldom meets a
	// purchase that is still being decided.
	PromiseTimeoutMs int `yaml:"promiseTimeoutMs"`
	// LookupSlots is how many purchases off sale may look for their order in MySQL at the same time; one more is BUSY.
	LookupSlots int `yaml:"lookupSlots"`
	// PeekEveryMs is how often the shares of a SKU with traffic are read.
	PeekEveryMs int `yaml:"peekEveryMs"`
	// JournalAgeMs is the age, by the clock of Redis, at which an undecided take is looked into.
	JournalAgeMs int `yaml:"journalAgeMs"`
	// JournalEveryMs is how often journals are swept.
	JournalEveryMs int `yaml:"journalEveryMs"`
	// ReshareTimeoutMs bounds one reshare.
	ReshareTimeoutMs int `yaml:"reshareTimeoutMs"`
}

// DefaultConfig returns the values that a sale on one machine was measured with.
func DefaultConfig() Config {
	return Config{
		PurchaseTimeoutMs: 2000,
		ReadTimeoutMs:     2000,
		ReshareWaitMs:     250,
		WriterQueue:       4096,
		WriterGroup:       500,
		Writers:           2,
		PromiseTimeoutMs:  2000,
		LookupSlots:       16,
		PeekEveryMs:       1000,
		JournalAgeMs:      5000,
		JournalEveryMs:    1000,
		ReshareTimeoutMs:  60_000,
	}
}

// Validate returns an error naming the first setting that is out of range, and what is allowed.
func (c Config) Validate() error {
	for _, s := range []struct {
		name          string
		value, lo, hi int
	}{
		{"purchaseTimeoutMs", c.PurchaseTimeoutMs, 10, 60_000},
		{"readTimeoutMs", c.ReadTimeoutMs, 10, 60_000},
		{"reshareWaitMs", c.ReshareWaitMs, 0, 10_000},
		{"writerQueue", c.WriterQueue, 1, 1_000_000},
		{"writerGroup", c.WriterGroup, 1, 500},
		{"writers", c.Writers, 1, 16},
		{"promiseTimeoutMs", c.PromiseTimeoutMs, 10, 60_000},
		{"lookupSlots", c.LookupSlots, 1, 1000},
		{"peekEveryMs", c.PeekEveryMs, 50, 1400},
		{"journalAgeMs", c.JournalAgeMs, 100, 600_000},
		{"journalEveryMs", c.JournalEveryMs, 50, 60_000},
		{"reshareTimeoutMs", c.ReshareTimeoutMs, 1000, 600_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return fmt.Errorf("%s: %d is out of range: must be from %d to %d", s.name, s.value, s.lo, s.hi)
		}
	}
	if c.PromiseTimeoutMs >= c.JournalAgeMs {
		return fmt.Errorf("promiseTimeoutMs: %d must be below journalAgeMs (%d)", c.PromiseTimeoutMs, c.JournalAgeMs)
	}
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
