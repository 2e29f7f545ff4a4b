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
}

// DefaultConfig returns what a node starts with.
//
// The rates for addresses and buyers are the design's: a buyer who clicks as fast as a human can stays below 5 a second,
// and 100 a second are an office or a mobile carrier behind one address. The global rate is a little below the 47 000
// requests a second that the bare HTTP server answered over 1 000 connections on two cores. Bursts are one second's
// worth. A bucket that is full again takes no room, so the tables need to hold only who sent something in the last
// second: a million buyers (34 MiB) and 131 072 addresses (4 MiB) are far above what the global rate lets through, and
// leave room for a burst of guessed ids.
func DefaultConfig() Config {
	return Config{
		GlobalPerSecond: 40_000, GlobalBurst: 40_000,
		AddressPerSecond: 100, AddressBurst: 100,
		BuyerPerSecond: 5, BuyerBurst: 5,
		MaxAddresses: 1 << 17, MaxBuyers: 1 << 20,
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
	if c.MaxAddresses < 1 || c.MaxAddresses > maxTracked {
		return sale.BadInput("maxAddresses", fmt.Sprintf("must be a whole number from 1 to %d", maxTracked))
	}
	if c.MaxBuyers < 1 || c.MaxBuyers > maxTracked {
		return sale.BadInput("maxBuyers", fmt.Sprintf("must be a whole number from 1 to %d", maxTracked))
	}
	return nil
}
