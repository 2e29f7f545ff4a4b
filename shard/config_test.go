package shard

import (
	"context"
	"strings"
	"testing"
)

func TestConfigNamesWhatIsWrong(t *testing.T) {
	good := DefaultConfig()
	good.Addresses = []string{"127.0.0.1:6379"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*Config){
		"addresses":       func(c *Config) { c.Addresses = nil },
		"addresses[1]":    func(c *Config) { c.Cluster, c.Addresses = true, []string{"a:1", ""} },
		"addresses[0]":    func(c *Config) { c.Addresses = []string{"redis"} },
		"addresses[0]: ":  func(c *Config) { c.Addresses = []string{`["127.0.0.1:6379"]`} },
		`addresses[0]: "`: func(c *Config) { c.Addresses = []string{"127.0.0.1:0"} },
		"addresses: ":     func(c *Config) { c.Addresses = []string{"a:1", "b:1"} },
		"masterName":      func(c *Config) { c.Cluster, c.MasterName = true, "m" },
		"prefix":          func(c *Config) { c.Prefix = "a{b}" },
		"poolSize":        func(c *Config) { c.PoolSize = 0 },
		"minIdleConns":    func(c *Config) { c.MinIdleConns = c.PoolSize + 1 },
		"poolTimeoutMs":   func(c *Config) { c.PoolTimeoutMs = 0 },
		"dialTimeoutMs":   func(c *Config) { c.DialTimeoutMs = -1 },
		"ioTimeoutMs":     func(c *Config) { c.IOTimeoutMs = 0 },
		"flushTimeoutMs":  func(c *Config) { c.FlushTimeoutMs = 100_000 },
		"laneQueue":       func(c *Config) { c.LaneQueue = 0 },
		"flushCalls":      func(c *Config) { c.FlushCalls = 0 },
		"settleQueue":     func(c *Config) { c.SettleQueue = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) || !strings.Contains(err.Error(), "must") {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := Open(context.Background(), bad); err == nil {
			t.Errorf("%s: opened", field)
		}
	}
}
