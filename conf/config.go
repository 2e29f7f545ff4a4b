// Package conf is the configuration of a node: strictly read from defaults, a YAML file, the environment and flags,
// validated, and printed without its secrets. It hands each package the Config that the package itself defines.
package conf

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"stockade/biz/auth"
	"stockade/biz/router"
	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/limiter"
	"stockade/mq"
	"stockade/shard"
	"stockade/store"
)

// Config is everything that can be set. Keys of a section are documented at the section's own type.
type Config struct {
	// NodeName names this process in logs and in the outbox; empty means the host's name.
	NodeName string `yaml:"nodeName"`
	// StopTimeoutMs bounds a stop in all, from SIGTERM to the end of the process. What has not ended by then is logged, and
	// left to the other nodes.
	StopTimeoutMs int `yaml:"stopTimeoutMs"`
	// Log is about the log on standard error.
	Log Log `yaml:"log"`
	// Router is about HTTP.
	Router router.Config `yaml:"router"`
	// Auth is about who may do what.
	Auth auth.Config `yaml:"auth"`
	// Store is about MySQL or SQLite.
	Store store.Config `yaml:"store"`
	// Shard is about Redis. The embedded mode brings its own and ignores where others are.
	Shard shard.Config `yaml:"shard"`
	// MQ is about the broker, the relay and the consumers.
	MQ mq.Config `yaml:"mq"`
	// Cache is about what a node remembers of SKUs and their shares.
	Cache cache.Config `yaml:"cache"`
	// Limiter is about rates.
	Limiter limiter.Config `yaml:"limiter"`
	// Doctor is about the look before a sale.
	Doctor Doctor `yaml:"doctor"`
	// Toggles is about an operator's switches.
	Toggles Toggles `yaml:"toggles"`
	// Service is about purchases, reshares and repairs.
	Service service.Config `yaml:"service"`
}

// Toggles says where this node's own switches are.
type Toggles struct {
	// File is the path of a YAML file whose toggles win on this node over those stored for all nodes; it is looked at twice
	// a second and need not be there. Empty: none. `toggle: value` for all SKUs, `skus: {demo: {toggle: value}}` for one.
	File string `yaml:"file"`
}

// Log says what is logged, and how.
type Log struct {
	// Level is the least severe level that is written.
	Level string `yaml:"level"`
	// Format is text for people or json for machines.
	Format string `yaml:"format"`
}

const maxNodeName = 128 // bytes

// The choices of Log.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

// Default is the configuration of the embedded mode: what every package recommends.
func Default() Config {
	c := Config{
		StopTimeoutMs: 15_000,

		Log:     Log{Level: "info", Format: "text"},
		Router:  router.DefaultConfig(),
		Auth:    auth.DefaultConfig(),
		Store:   store.DefaultConfig(),
		Shard:   shard.DefaultConfig(),
		MQ:      mq.DefaultConfig(),
		Cache:   cache.DefaultConfig(),
		Limiter: limiter.DefaultConfig(),
		Service: service.DefaultConfig(),
	}
	c.Shard.Addresses = []string{"127.0.0.1:6379"}
	c.MQ.Driver = mq.DriverMemory
	return c
}

// Validate checks the keys that belong to no section, and what sections expect of each other.
func (c Config) Validate() error {
	if len(c.NodeName) > maxNodeName || strings.ContainsFunc(c.NodeName, unprintable) {
		return sale.BadInput("nodeName", "must be at most 128 bytes of printable ASCII")
	}
	if c.StopTimeoutMs < 1000 || c.StopTimeoutMs > 600_000 {
		return sale.BadInput("stopTimeoutMs", "must be a whole number from 1000 to 600000")
	}
	if c.Service.PeekEveryMs >= c.Cache.FlagLifetimeMs {
		return fmt.Errorf("service.peekEveryMs: %d must be below cache.flagLifetimeMs (%d), or sold-out flags lapse between two looks",
			c.Service.PeekEveryMs, c.Cache.FlagLifetimeMs)
	}
	if c.Auth.AdminTokensFile == "" && !router.Loopback(c.Router.Admin) {
		return fmt.Errorf("router.admin: %q must be a loopback address, such as 127.0.0.1:8081, as long as auth.adminTokensFile is empty",
			c.Router.Admin)
	}
	return nil
}

// Validate returns a *sale.InputError for the first key that is out of range.
func (l Log) Validate() error {
	switch {
	case !slices.Contains(logLevels, l.Level):
		return sale.BadInput("level", "must be one of "+strings.Join(logLevels, ", "))
	case !slices.Contains(logFormats, l.Format):
		return sale.BadInput("format", "must be one of "+strings.Join(logFormats, ", "))
	}
	return nil
}

// Validate returns a *sale.InputError for a path that no file can have.
func (t Toggles) Validate() error {
	if strings.ContainsRune(t.File, 0) {
		return sale.BadInput("file", "must be a path")
	}
	return nil
}

// Node is NodeName, or the host's name where that is empty.
func (c Config) Node() (string, error) {
	if c.NodeName != "" {
		return c.NodeName, nil
	}
	return os.Hostname()
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
