package limiter

import (
	"fmt"

	"stockade/biz/sale"
)

// Limits of a Config.
const (
	maxPerSecond = 1_000_000 // finer than that, an interval of whole nanoseconds is off by more than 0.1 %
	maxBurst     = 1_000_000
	maxTracked   = 1 << 24 // buckets of one table: about 550 MiB
	maxRequests  = 1_000_000
	maxEvents    = 5_000_000 // more take longer to count than a count may
)

// Config says how fast requests may come. A rate of 0 turns its bucket off, and its burst is then not looked at.
type Config struct {
	// GlobalPerSecond is how many requests per second this node takes, whoever sends them.
	GlobalPerSecond int `yaml:"globalPerSecond"`
	// GlobalBurst is how many of them may come at once after a pause.
	GlobalBurst int `yaml:"globalBurst"`
	// AddressPerSecond is how many requests per second one client address may send; for IPv6, one /64.
	AddressPerSecond int `yaml:"addressPerSecond"`
	// AddressBurst is how many of them may come at once after a pause.
	AddressBurst int `yaml:"addressBurst"`
	// BuyerPerSecond is how many requests per second one buyer may send.
	BuyerPerSecond int `yaml:"buyerPerSecond"`
	// BuyerBurst is how many of them may come at once after a pause.
	BuyerBurst int `yaml:"buyerBurst"`
	// MaxAddresses is how many addresses are told apart at the same moment. The table takes 34 bytes for each.
	MaxAddresses int `yaml:"maxAddresses"`
	// MaxBuyers is how many buyers are told apart at the same moment. The table takes 34 bytes for each.
	MaxBuyers int `yaml:"maxBuyers"`

	// Lanes rules the breaker of each lane to a Redis master; a call is one flush of the lane.
	Lanes Rule `yaml:"lanes"`
	// Outbox rules the breaker before MySQL; a call is one promise of a group of purchases.
	Outbox Rule `yaml:"outbox"`
	// Publish rules the breaker before RabbitMQ; a call is one envelope, from its publishing to its confirm.
	Publish Rule `yaml:"publish"`
	// BreakersFile is the path of a YAML file with rules that win over those above; it is looked at once a second and need not
	// be there. Empty: none. `lanes: {slowMs: 80}` changes one key of all lanes, `lane.10.0.0.1:6379: {…}` those of one.
	BreakersFile string `yaml:"breakersFile"`
	// BacklogMaxEvents is how many accepted orders of all nodes may wait for RabbitMQ to take them before purchases are BUSY;
	// below nine tenths of it they are served again.
	BacklogMaxEvents int `yaml:"backlogMaxEvents"`
	// MaxInFlight is how many requests this node has in hand at most; one more is BUSY. Event streams do not count.
	MaxInFlight int `yaml:"maxInFlight"`
	// AdaptiveCPUPercent is how busy the machine's processors must be for a part of the purchases to be BUSY; 0: never. It is
	// the whole machine's use: a container that may use a part of it meets its quota at a lower figure.
	AdaptiveCPUPercent int `yaml:"adaptiveCPUPercent"`
	// AdaptiveInFlight is how many requests must be in hand besides.
	AdaptiveInFlight int `yaml:"adaptiveInFlight"`
}

// DefaultConfig returns what a node starts with.
//
// The rates for addresses and buyers are the design's: a buyer who clicks as fast as a human can stays below 5 a second,
// and 100 a second are an office or a mobile carrier behind one address. The global rate is a little below the 47 000
// requests a second that the bare HTTP server answered over 1 000 connections on two cores. Bursts are one second's
// worth. A bucket that is full again takes no room, so the tables need to hold only who sent something in the last
// second: a million buyers (34 MiB) and 131 072 addresses (4 MiB) are far above what the global rate lets through, and
// leave room for a burst of guessed ids.
//
// Half a million orders that wait for the broker are some minutes of its work. A machine whose processors are all
// busy is no reason to refuse anybody while the answers come in time: a sale over 1 000 connections does that, so that more
// than twice as many requests must wait, too.
func DefaultConfig() Config {
	return Config{
		GlobalPerSecond: 40_000, GlobalBurst: 40_000,
		AddressPerSecond: 100, AddressBurst: 100,
		BuyerPerSecond: 5, BuyerBurst: 5,
		MaxAddresses: 1 << 17, MaxBuyers: 1 << 20,
		Lanes: defaultLaneRule, Outbox: defaultOutboxRule, Publish: defaultPublishRule,
		BacklogMaxEvents: 500_000, MaxInFlight: 20_000, AdaptiveCPUPercent: 95, AdaptiveInFlight: 2000,
	}
}

// Validate returns a *sale.InputError for the first field that is out of range.
func (c Config) Validate() error {
	rates := [...]struct {
		name             string
		perSecond, burst int
	}{
		{"global", c.GlobalPerSecond, c.GlobalBurst},
		{"address", c.AddressPerSecond, c.AddressBurst},
		{"buyer", c.BuyerPerSecond, c.BuyerBurst},
	}
	for _, r := range rates {
		if r.perSecond < 0 || r.perSecond > maxPerSecond {
			return sale.BadInput(r.name+"PerSecond", fmt.Sprintf("must be a whole number from 0 (off) to %d", maxPerSecond))
		}
		if r.perSecond > 0 && (r.burst < 1 || r.burst > maxBurst) {
			return sale.BadInput(r.name+"Burst", fmt.Sprintf("must be a whole number from 1 to %d", maxBurst))
		}
	}
	for _, r := range [...]struct {
		name          string
		value, lo, hi int
	}{
		{"maxAddresses", c.MaxAddresses, 1, maxTracked},
		{"maxBuyers", c.MaxBuyers, 1, maxTracked},
		{"backlogMaxEvents", c.BacklogMaxEvents, 10, maxEvents},
		{"maxInFlight", c.MaxInFlight, 1, maxRequests},
		{"adaptiveCPUPercent", c.AdaptiveCPUPercent, 0, 100},
		{"adaptiveInFlight", c.AdaptiveInFlight, 0, maxRequests},
	} {
		if r.value < r.lo || r.value > r.hi {
			return sale.BadInput(r.name, fmt.Sprintf("must be a whole number from %d to %d", r.lo, r.hi))
		}
	}
	for _, r := range [...]struct {
		section string
		rule    Rule
	}{{"lanes", c.Lanes}, {"outbox", c.Outbox}, {"publish", c.Publish}} {
		if err := r.rule.check(r.section); err != nil {
			return err
		}
	}
	return nil
}
