package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/biz/sale"
)

// The databases of Config.Dialect.
const (
	MySQL  = "mysql"  // MySQL 8.0.16 or later, MariaDB 10.6 or later
	SQLite = "sqlite" // a file of this process alone
)

// Config chooses the database and bounds what waits for it. Times are milliseconds.
type Config struct {
	// Dialect is "mysql" or "sqlite".
	Dialect string `yaml:"dialect"`
	// DSN of the MySQL server, user:password@tcp(host:port)/database. It holds the password: never print it. Session
	// settings that promises rest on are set by this package whatever the DSN says.
	DSN string `yaml:"dsn" secret:"true"`
	// Path of the SQLite file.
	Path string `yaml:"path"`
	// MaxWriters is how many connections write to MySQL. Promises of one SKU are serial, so a few are enough. SQLite
	// has one.
	MaxWriters int `yaml:"maxWriters"`
	// SettleWriters is how many further connections to MySQL settle payments, cancels and expiries, so that these never
	// take a connection from purchases. Settlements of one SKU are serial as well. SQLite has one writer.
	SettleWriters int `yaml:"settleWriters"`
	// MaxReaders is how many connections read; each running reshare holds one of them.
	MaxReaders int `yaml:"maxReaders"`
	// ConnectTimeoutMs bounds a dial to MySQL with its handshake.
	ConnectTimeoutMs int `yaml:"connectTimeoutMs"`
	// WriteTimeoutMs bounds one statement of a writing connection: what MySQL has not answered by then is unknown.
	WriteTimeoutMs int `yaml:"writeTimeoutMs"`
	// ReadTimeoutMs bounds one statement of a reading connection, audits included.
	ReadTimeoutMs int `yaml:"readTimeoutMs"`
	// ReshareLockWaitMs is how long a reshare queues behind promises for the ledger row, whole seconds.
	ReshareLockWaitMs int `yaml:"reshareLockWaitMs"`
	// BusyTimeoutMs is how long SQLite waits for a lock that another process holds on the file.
	BusyTimeoutMs int `yaml:"busyTimeoutMs"`
}

// Bounds of a Config.
const (
	maxPool      = 1000    // connections
	maxTimeoutMs = 600_000 // ten minutes: longer is a hang
	maxReshareMs = 50_000  // InnoDB's own default lock wait
	minWriteMs   = 2000    // longer than the lock wait of a second, which must be what ends a statement
)

// DefaultConfig is the embedded mode's database. For MySQL, set Dialect and DSN: two connections reached 70 000 units a
// second on one hot SKU in the design's measurements; consumers and sweepers share the rest of the 16.
func DefaultConfig() Config {
	return Config{
		Dialect:           SQLite,
		Path:              ".stockade/stockade.db",
		MaxWriters:        16,
		SettleWriters:     2,
		MaxReaders:        16,
		ConnectTimeoutMs:  3000,
		WriteTimeoutMs:    10_000,
		ReadTimeoutMs:     60_000,
		ReshareLockWaitMs: 3000,
		BusyTimeoutMs:     5000,
	}
}

// Validate returns a *sale.InputError naming the first field that cannot work.
func (c Config) Validate() error {
	switch c.Dialect {
	case MySQL:
		if err := validateDSN(c.DSN); err != nil {
			return err
		}
	case SQLite:
		if c.Path == "" || strings.ContainsAny(c.Path, "?#\x00") || strings.Contains(c.Path, ":memory:") {
			return sale.BadInput("path", "must name a file, without ? and #: SQLite in memory has no separate readers")
		}
	default:
		return sale.BadInput("dialect", `must be "mysql" or "sqlite"`)
	}
	for _, f := range [...]struct {
		name             string
		value, low, high int
	}{
		{"maxWriters", c.MaxWriters, 1, maxPool},
		{"settleWriters", c.SettleWriters, 1, maxPool},
		{"maxReaders", c.MaxReaders, 2, maxPool},
		{"connectTimeoutMs", c.ConnectTimeoutMs, 1, maxTimeoutMs},
		{"writeTimeoutMs", c.WriteTimeoutMs, minWriteMs, maxTimeoutMs},
		{"readTimeoutMs", c.ReadTimeoutMs, 1, maxTimeoutMs},
		{"reshareLockWaitMs", c.ReshareLockWaitMs, 1000, maxReshareMs},
		{"busyTimeoutMs", c.BusyTimeoutMs, 0, maxTimeoutMs},
	} {
		if f.value < f.low || f.value > f.high {
			return sale.BadInput(f.name, fmt.Sprintf("must be a whole number from %d to %d", f.low, f.high))
		}
	}
	if c.ReshareLockWaitMs%1000 != 0 {
		return sale.BadInput("reshareLockWaitMs", "must be whole seconds, such as 3000")
	}
	if c.Dialect == MySQL && c.WriteTimeoutMs <= c.ReshareLockWaitMs {
		return sale.BadInput("writeTimeoutMs", "must be more than reshareLockWaitMs")
	}
	return nil
}

// validateDSN does not pass the parser's words on: they may quote the password.
func validateDSN(dsn string) error {
	parsed, err := mysql.ParseDSN(dsn)
	if err != nil || parsed.DBName == "" {
		return sale.BadInput("dsn", "must be user:password@tcp(host:port)/database")
	}
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
