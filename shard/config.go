package shard

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Config says where Redis is and bounds everything that waits for it. Times are milliseconds.
type Config struct {
	// Addresses are host:port of the server; of several cluster nodes; or of the sentinels when masterName is set.
	Addresses []string `yaml:"addresses"`
	// MasterName is the name that the sentinels know the master by; empty without Sentinel.
	MasterName string `yaml:"masterName"`
	// Cluster says that the addresses belong to a Redis Cluster.
	Cluster bool `yaml:"cluster"`
	// Username and Password log in to the servers; SentinelPassword to the sentinels.
	Username         string `yaml:"username"`
	Password         string `yaml:"password" secret:"true"`
	SentinelPassword string `yaml:"sentinelPassword" secret:"true"`
	// TLS encrypts connections and checks the servers' names against the system's authorities.
	TLS bool `yaml:"tls"`
	// Prefix begins the name of every key and channel.
	Prefix string `yaml:"prefix"`

	// PoolSize is how many connections may be open to each server. Purchases take one for each master; the others are
	// for reshares, sweepers and reads.
	PoolSize int `yaml:"poolSize"`
	// MinIdleConns is how many connections are kept open to each server: every timeout closes one.
	MinIdleConns int `yaml:"minIdleConns"`
	// PoolTimeoutMs is how long a command waits for a connection.
	PoolTimeoutMs int `yaml:"poolTimeoutMs"`
	// DialTimeoutMs bounds opening a connection.
	DialTimeoutMs int `yaml:"dialTimeoutMs"`
	// IOTimeoutMs bounds one write to, and one read from, a connection.
	IOTimeoutMs int `yaml:"ioTimeoutMs"`
	// FlushTimeoutMs bounds one flush of a lane from getting a connection to the last reply. After it the outcome of
	// what was sent is unknown.
	FlushTimeoutMs int `yaml:"flushTimeoutMs"`

	// LaneQueue is how many calls may wait for each master; one more is sale.ErrQueueFull.
	LaneQueue int `yaml:"laneQueue"`
	// FlushCalls is how many calls one flush carries at most.
	FlushCalls int `yaml:"flushCalls"`
	// SettleQueue is how many settlements that nobody waits for may be in memory; more are left to the journal sweeper.
	SettleQueue int `yaml:"settleQueue"`
}

// DefaultConfig returns a configuration without addresses.
func DefaultConfig() Config {
	return Config{
		Prefix:         "stk",
		PoolSize:       32,
		MinIdleConns:   4,
		PoolTimeoutMs:  200,
		DialTimeoutMs:  1000,
		IOTimeoutMs:    250,
		FlushTimeoutMs: 250,
		LaneQueue:      4096,
		FlushCalls:     1024,
		SettleQueue:    65_536,
	}
}

// Validate returns an error naming the first setting that is wrong, and what is allowed.
func (c Config) Validate() error {
	if len(c.Addresses) == 0 {
		return fmt.Errorf("addresses: must name at least one host:port")
	}
	for i, a := range c.Addresses {
		if err := checkAddress(a); err != nil {
			return fmt.Errorf("addresses[%d]: %q must be host:port with a port from 1 to 65535: %w", i, a, err)
		}
	}
	switch {
	case c.Cluster && c.MasterName != "":
		return fmt.Errorf("masterName: must be empty when cluster is true")
	case !c.Cluster && c.MasterName == "" && len(c.Addresses) > 1:
		return fmt.Errorf("addresses: must be one host:port, unless cluster is true or masterName is set")
	case !prefixPattern.MatchString(c.Prefix):
		return fmt.Errorf("prefix: %q must match [A-Za-z0-9._-]{1,64}", c.Prefix)
	}
	for _, s := range []struct {
		name          string
		value, lo, hi int
	}{
		{"poolSize", c.PoolSize, 2, 1000},
		{"minIdleConns", c.MinIdleConns, 0, c.PoolSize},
		{"poolTimeoutMs", c.PoolTimeoutMs, 1, 60_000},
		{"dialTimeoutMs", c.DialTimeoutMs, 1, 60_000},
		{"ioTimeoutMs", c.IOTimeoutMs, 1, 60_000},
		{"flushTimeoutMs", c.FlushTimeoutMs, 1, 60_000},
		{"laneQueue", c.LaneQueue, 1, 1_000_000},
		{"flushCalls", c.FlushCalls, 1, 10_000},
		{"settleQueue", c.SettleQueue, 1, 10_000_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return fmt.Errorf("%s: %d is out of range: must be from %d to %d", s.name, s.value, s.lo, s.hi)
		}
	}
	return nil
}

// checkAddress refuses what cannot be dialled: the client would only say so with every command.
func checkAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return errors.New("host or port is missing")
	}
	return nil
}

// client opens the client. It connects when the first command asks for it.
func (c Config) client() redis.UniversalClient {
	o := &redis.UniversalOptions{
		Addrs:            c.Addresses,
		MasterName:       c.MasterName,
		IsClusterMode:    c.Cluster,
		Username:         c.Username,
		Password:         c.Password,
		SentinelPassword: c.SentinelPassword,
		// RESP2 has no pushes, which the client would look for before every reply.
		Protocol:        2,
		DisableIdentity: true,
		PoolSize:        c.PoolSize,
		MinIdleConns:    c.MinIdleConns,
		PoolTimeout:     ms(c.PoolTimeoutMs),
		DialTimeout:     ms(c.DialTimeoutMs),
		DialerRetries:   1,
		ReadTimeout:     ms(c.IOTimeoutMs),
		WriteTimeout:    ms(c.IOTimeoutMs),
		// A flush has a deadline of its own; without this it would wait for the socket's.
		ContextTimeoutEnabled: true,
		// Whoever calls decides about trying again.
		MaxRetries:               -1,
		PipelinePoolSize:         -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if c.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(o)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
