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
	// MysqlPathRate is how many purchases per second this node takes for SKUs on path mysql; one more is BUSY.
	MysqlPathRate int `yaml:"mysqlPathRate"`
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

	// ChangeTimeoutMs is how long a payment, a cancel or a compensation may take in all before the answer is BUSY.
	ChangeTimeoutMs int `yaml:"changeTimeoutMs"`
	// SettleQueue is how many changes of orders may wait for a settlement; one more is BUSY.
	SettleQueue int `yaml:"settleQueue"`
	// SettleGroup is how many changes one settlement decides at most.
	SettleGroup int `yaml:"settleGroup"`
	// Settlers is how many settlements of payments and cancels run at the same time.
	Settlers int `yaml:"settlers"`
	// SettleTimeoutMs bounds one settlement.
	SettleTimeoutMs int `yaml:"settleTimeoutMs"`
	// ExpiryEveryMs is the pause between two sweeps for orders whose payment window has ended.
	ExpiryEveryMs int `yaml:"expiryEveryMs"`
	// ExpiryPerSecond is how many orders this node closes per second at most because their payment window has ended, so
	// that very many of them at once leave room for purchases.
	ExpiryPerSecond int `yaml:"expiryPerSecond"`
	// CreditQueue is how many restocks may wait to be credited to the gate at once; others wait for the sweeper.
	CreditQueue int `yaml:"creditQueue"`
	// CreditBatch is how many restocks are credited together.
	CreditBatch int `yaml:"creditBatch"`
	// CreditTimeoutMs bounds each step of crediting a batch.
	CreditTimeoutMs int `yaml:"creditTimeoutMs"`
	// CreditEveryMs is the pause between two sweeps for restocks that the gate has not got.
	CreditEveryMs int `yaml:"creditEveryMs"`
	// RestockAgeMs is the age at which a restock that the gate has not got is the sweeper's.
	RestockAgeMs int `yaml:"restockAgeMs"`
	// DeadLetters says who compensates the order of a dead letter: auto, the node at once, and every minute while that
	// fails; manual, an operator who drops it.
	DeadLetters string `yaml:"deadLetters"`
	// ReplayTimeoutMs is how long an operator's replay or drop of a dead letter may take.
	ReplayTimeoutMs int `yaml:"replayTimeoutMs"`

	// CloseOnUnexplainedDrift pauses the sale of a SKU whose gate and ledger do not add up even after a full reshare.
	CloseOnUnexplainedDrift bool `yaml:"closeOnUnexplainedDrift"`
}

// The choices of Config.DeadLetters.
const (
	DeadLettersAuto   = "auto"
	DeadLettersManual = "manual"
)

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
		MysqlPathRate:     5000,
		LookupSlots:       16,
		PeekEveryMs:       1000,
		JournalAgeMs:      5000,
		JournalEveryMs:    1000,
		ReshareTimeoutMs:  60_000,
		ChangeTimeoutMs:   4000,
		SettleQueue:       4096,
		SettleGroup:       500,
		Settlers:          2,
		SettleTimeoutMs:   2000,
		ExpiryEveryMs:     1000,
		ExpiryPerSecond:   5000,
		CreditQueue:       20_000,
		CreditBatch:       500,
		CreditTimeoutMs:   2000,
		CreditEveryMs:     500,
		RestockAgeMs:      1000,
		DeadLetters:       DeadLettersAuto,
		ReplayTimeoutMs:   10_000,
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
		{"mysqlPathRate", c.MysqlPathRate, 1, 1_000_000},
		{"lookupSlots", c.LookupSlots, 1, 1000},
		{"peekEveryMs", c.PeekEveryMs, 50, 1400},
		{"journalAgeMs", c.JournalAgeMs, 100, 600_000},
		{"journalEveryMs", c.JournalEveryMs, 50, 60_000},
		{"reshareTimeoutMs", c.ReshareTimeoutMs, 1000, 600_000},
		{"changeTimeoutMs", c.ChangeTimeoutMs, 10, 60_000},
		{"settleQueue", c.SettleQueue, 1, 1_000_000},
		{"settleGroup", c.SettleGroup, 1, 500},
		{"settlers", c.Settlers, 1, 16},
		{"settleTimeoutMs", c.SettleTimeoutMs, 10, 60_000},
		{"expiryEveryMs", c.ExpiryEveryMs, 50, 60_000},
		{"expiryPerSecond", c.ExpiryPerSecond, 1, 1_000_000},
		{"creditQueue", c.CreditQueue, 1, 1_000_000},
		{"creditBatch", c.CreditBatch, 1, 500},
		{"creditTimeoutMs", c.CreditTimeoutMs, 10, 60_000},
		{"creditEveryMs", c.CreditEveryMs, 50, 60_000},
		{"restockAgeMs", c.RestockAgeMs, 0, 600_000},
		{"replayTimeoutMs", c.ReplayTimeoutMs, 10, 60_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return fmt.Errorf("%s: %d is out of range: must be from %d to %d", s.name, s.value, s.lo, s.hi)
		}
	}
	if c.DeadLetters != DeadLettersAuto && c.DeadLetters != DeadLettersManual {
		return fmt.Errorf("deadLetters: %q must be %s or %s", c.DeadLetters, DeadLettersAuto, DeadLettersManual)
	}
	if c.PromiseTimeoutMs >= c.JournalAgeMs {
		return fmt.Errorf("promiseTimeoutMs: %d must be below journalAgeMs (%d)", c.PromiseTimeoutMs, c.JournalAgeMs)
	}
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
