package mq

import (
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// The drivers of Config.Driver.
const (
	DriverRabbit = "rabbit" // a RabbitMQ server
	DriverMemory = "memory" // inside this process; forgets everything when it ends
)

// The queue types of Config.QueueType.
const (
	QueueQuorum  = "quorum"
	QueueClassic = "classic"
)

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Config chooses the broker and bounds everything that waits for it. Times are milliseconds.
type Config struct {
	// Driver is "rabbit" or "memory".
	Driver string `yaml:"driver"`
	// URL of the RabbitMQ server, amqp:// or amqps://. It holds the password: never print it.
	URL string `yaml:"url" secret:"true"`
	// Prefix begins the name of every exchange and queue.
	Prefix string `yaml:"prefix"`
	// QueueType is "quorum" or "classic". It cannot be changed for queues that exist.
	QueueType string `yaml:"queueType"`
	// QueueMaxMessages is how many messages may wait in each queue but the dead queue; one more is rejected. Orders
	// then stay in the outbox, poison events unacked, and expiry is left to its sweeper. It cannot be changed for queues that exist.
	QueueMaxMessages int `yaml:"queueMaxMessages"`
	// DeadMaxMessages is how many dead letters may wait in the dead queue. When it is full, consumers stop at the next
	// one. It cannot be changed for queues that exist.
	DeadMaxMessages int `yaml:"deadMaxMessages"`

	// ConnectTimeoutMs bounds a dial with its handshake, and each exchange of commands with the server after it.
	ConnectTimeoutMs int `yaml:"connectTimeoutMs"`
	// WriteTimeoutMs bounds one write to the socket. A server that stops reading is given up after it.
	WriteTimeoutMs int `yaml:"writeTimeoutMs"`
	// HeartbeatMs is the heartbeat interval, whole seconds; a server that is silent for three of them is given up.
	HeartbeatMs int `yaml:"heartbeatMs"`
	// ReconnectMinMs and ReconnectMaxMs bound the wait before another try to connect; it doubles in between.
	ReconnectMinMs int `yaml:"reconnectMinMs"`
	ReconnectMaxMs int `yaml:"reconnectMaxMs"`
	// MaxInFlight is how many published messages may wait for their confirms. A quorum queue confirmed 10 800 small
	// messages per second with 200 in flight, 500 one by one.
	MaxInFlight int `yaml:"maxInFlight"`
	// ConfirmTimeoutMs is how long a confirm is waited for before the outcome is unknown.
	ConfirmTimeoutMs int `yaml:"confirmTimeoutMs"`

	// RelayQueue is how many accepted orders may wait in memory for the relay; more are left to the sweeper.
	RelayQueue int `yaml:"relayQueue"`
	// RelayWindow is how many envelopes of the relay may be between packing and their mark in the outbox.
	RelayWindow int `yaml:"relayWindow"`
	// MarkBatch is how many outbox rows one statement marks SENT.
	MarkBatch int `yaml:"markBatch"`
	// StoreTimeoutMs bounds one call of the relay or its sweepers to the store.
	StoreTimeoutMs int `yaml:"storeTimeoutMs"`
	// OutboxSweepAfterMs is the age at which a NEW outbox row is published by a sweeper.
	OutboxSweepAfterMs int `yaml:"outboxSweepAfterMs"`
	// OutboxRecheckAfterMs is the age at which a SENT row without an order is looked into.
	OutboxRecheckAfterMs int `yaml:"outboxRecheckAfterMs"`
	// NoticeSweepAfterMs is the age at which a notice is published; one whose publishing failed is tried again that
	// much later.
	NoticeSweepAfterMs int `yaml:"noticeSweepAfterMs"`
	// SweepBatch is how many rows a sweeper claims at once. The store gives out at most 500.
	SweepBatch int `yaml:"sweepBatch"`

	// Consumers is how many batches of envelopes are written at the same time.
	Consumers int `yaml:"consumers"`
	// Prefetch is how many envelopes the broker hands a consumer ahead of its acks.
	Prefetch int `yaml:"prefetch"`
	// InsertTimeoutMs bounds one try to write a batch of orders, to bury a dead letter, or to close a batch of orders
	// whose payment windows ended.
	InsertTimeoutMs int `yaml:"insertTimeoutMs"`
	// Retry1Ms, Retry2Ms and Retry3Ms are how long an order that cannot be written waits before its first, second and
	// third further try. After the last one it is a dead letter. They cannot be changed for queues that exist.
	Retry1Ms int `yaml:"retry1Ms"`
	Retry2Ms int `yaml:"retry2Ms"`
	Retry3Ms int `yaml:"retry3Ms"`
	// PauseMinMs and PauseMaxMs bound a consumer's wait after trouble with the store or the broker.
	PauseMinMs int `yaml:"pauseMinMs"`
	PauseMaxMs int `yaml:"pauseMaxMs"`

	// StopTimeoutMs is how long Close lets the relay drain and a consumer finish its batch.
	StopTimeoutMs int `yaml:"stopTimeoutMs"`
}

// DefaultConfig returns a RabbitMQ configuration without URL.
func DefaultConfig() Config {
	return Config{
		Driver:               DriverRabbit,
		Prefix:               "stockade",
		QueueType:            QueueQuorum,
		QueueMaxMessages:     100_000,
		DeadMaxMessages:      1_000_000,
		ConnectTimeoutMs:     5000,
		WriteTimeoutMs:       5000,
		HeartbeatMs:          5000,
		ReconnectMinMs:       100,
		ReconnectMaxMs:       5000,
		MaxInFlight:          512,
		ConfirmTimeoutMs:     10_000,
		RelayQueue:           20_000,
		RelayWindow:          256,
		MarkBatch:            1000,
		StoreTimeoutMs:       10_000,
		OutboxSweepAfterMs:   30_000,
		OutboxRecheckAfterMs: 120_000,
		NoticeSweepAfterMs:   1000,
		SweepBatch:           1000,
		Consumers:            2,
		Prefetch:             20,
		InsertTimeoutMs:      10_000,
		Retry1Ms:             1000,
		Retry2Ms:             5000,
		Retry3Ms:             10_000,
		PauseMinMs:           100,
		PauseMaxMs:           5000,
		StopTimeoutMs:        5000,
	}
}

// Validate returns an error naming the first setting that is wrong, and what is allowed. It never repeats the URL.
func (c Config) Validate() error {
	if err := c.validateNames(); err != nil {
		return err
	}
	for _, s := range []struct {
		name          string
		value, lo, hi int
	}{
		{"queueMaxMessages", c.QueueMaxMessages, 1, 10_000_000},
		{"deadMaxMessages", c.DeadMaxMessages, 1, 10_000_000},
		{"connectTimeoutMs", c.ConnectTimeoutMs, 100, 60_000},
		{"writeTimeoutMs", c.WriteTimeoutMs, 100, 60_000},
		{"heartbeatMs", c.HeartbeatMs, 1000, 60_000},
		{"reconnectMinMs", c.ReconnectMinMs, 1, 60_000},
		{"reconnectMaxMs", c.ReconnectMaxMs, c.ReconnectMinMs, 60_000},
		{"maxInFlight", c.MaxInFlight, 1, 10_000},
		{"confirmTimeoutMs", c.ConfirmTimeoutMs, 100, 120_000},
		{"relayQueue", c.RelayQueue, 1, 1_000_000},
		{"relayWindow", c.RelayWindow, 1, 10_000},
		{"markBatch", c.MarkBatch, 1, 1000},
		{"storeTimeoutMs", c.StoreTimeoutMs, 100, 60_000},
		{"outboxSweepAfterMs", c.OutboxSweepAfterMs, 100, 3_600_000},
		{"outboxRecheckAfterMs", c.OutboxRecheckAfterMs, 100, 3_600_000},
		{"noticeSweepAfterMs", c.NoticeSweepAfterMs, 10, 3_600_000},
		{"sweepBatch", c.SweepBatch, 1, 10_000},
		{"consumers", c.Consumers, 1, 30},
		{"prefetch", c.Prefetch, 1, 1000},
		{"insertTimeoutMs", c.InsertTimeoutMs, 100, 60_000},
		{"retry1Ms", c.Retry1Ms, 1, 3_600_000},
		{"retry2Ms", c.Retry2Ms, 1, 3_600_000},
		{"retry3Ms", c.Retry3Ms, 1, 3_600_000},
		{"pauseMinMs", c.PauseMinMs, 1, 60_000},
		{"pauseMaxMs", c.PauseMaxMs, c.PauseMinMs, 60_000},
		{"stopTimeoutMs", c.StopTimeoutMs, 1, 60_000},
	} {
		if s.value < s.lo || s.value > s.hi {
			return fmt.Errorf("%s: %d is out of range: must be from %d to %d", s.name, s.value, s.lo, s.hi)
		}
	}
	if c.HeartbeatMs%1000 != 0 {
		return fmt.Errorf("heartbeatMs: %d must be whole seconds, a multiple of 1000", c.HeartbeatMs)
	}
	return nil
}

func (c Config) validateNames() error {
	switch {
	case c.Driver != DriverRabbit && c.Driver != DriverMemory:
		return fmt.Errorf("driver: %q is unknown: must be %q or %q", c.Driver, DriverRabbit, DriverMemory)
	case !prefixPattern.MatchString(c.Prefix):
		return fmt.Errorf("prefix: %q must match [A-Za-z0-9._-]{1,64}", c.Prefix)
	case c.QueueType != QueueQuorum && c.QueueType != QueueClassic:
		return fmt.Errorf("queueType: %q is unknown: must be %q or %q", c.QueueType, QueueQuorum, QueueClassic)
	case c.Driver == DriverMemory:
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "amqp" && u.Scheme != "amqps") || u.Host == "" {
		return fmt.Errorf("url: must be of the form amqp://user:password@host:port/vhost, or amqps://…")
	}
	return nil
}

// retryAfter is the wait in a tier, counted from 0.
func (c Config) retryAfter(tier int) time.Duration {
	return ms([retryTiers]int{c.Retry1Ms, c.Retry2Ms, c.Retry3Ms}[tier])
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
