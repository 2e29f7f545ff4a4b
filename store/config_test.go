package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stockade/biz/sale"
)

func TestConfigValidate(t *testing.T) {
	mysql := func(c *Config) { c.Dialect, c.DSN = MySQL, "u:secret@tcp(db:3306)/stockade" }
	for _, good := range []func(*Config){func(*Config) {}, mysql} {
		c := DefaultConfig()
		good(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for field, breaks := range map[string][]func(*Config){
		"dialect": {func(c *Config) { c.Dialect = "" }, func(c *Config) { c.Dialect = "postgres" }},
		"path": {
			func(c *Config) { c.Path = "" },
			func(c *Config) { c.Path = ":memory:" },
			func(c *Config) { c.Path = "a?mode=ro" },
		},
		"dsn": {
			func(c *Config) { mysql(c); c.DSN = "" },
			func(c *Config) { mysql(c); c.DSN = "u:secret@tcp(db:3306)/" },
			func(c *Config) { mysql(c); c.DSN = "u:secret@db" },
		},
		"maxWriters":       {func(c *Config) { c.MaxWriters = 0 }, func(c *Config) { c.MaxWriters = 1 << 20 }},
		"settleWriters":    {func(c *Config) { c.SettleWriters = 0 }, func(c *Config) { c.SettleWriters = maxPool + 1 }},
		"maxReaders":       {func(c *Config) { c.MaxReaders = 1 }},
		"connectTimeoutMs": {func(c *Config) { c.ConnectTimeoutMs = 0 }},
		"writeTimeoutMs": {
			func(c *Config) { c.WriteTimeoutMs = 999 },
			func(c *Config) { mysql(c); c.WriteTimeoutMs = c.ReshareLockWaitMs },
		},
		"readTimeoutMs":     {func(c *Config) { c.ReadTimeoutMs = -1 }},
		"reshareLockWaitMs": {func(c *Config) { c.ReshareLockWaitMs = 1500 }, func(c *Config) { c.ReshareLockWaitMs = 0 }},
		"busyTimeoutMs":     {func(c *Config) { c.BusyTimeoutMs = -1 }},
	} {
		for _, b := range breaks {
			c := DefaultConfig()
			b(&c)
			var input *sale.InputError
			err := c.Validate()
			if !errors.As(err, &input) || input.Field != field || input.Detail == "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", field, err)
			}
			if _, err := Open(context.Background(), c, Options{}); !errors.As(err, &input) {
				t.Errorf("%s: opened: %v", field, err)
			}
		}
	}
}

func TestOpenRefusesAnOldSchema(t *testing.T) {
	ctx := context.Background()
	cfg := DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "x.db")
	refused := func() {
		t.Helper()
		db, err := Open(ctx, cfg, Options{})
		if err == nil {
			_ = db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "stockade migrate") {
			t.Errorf("opened: %v", err)
		}
	}
	refused()
	for range 2 {
		if err := Migrate(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(ctx, cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.write.Exec("UPDATE goose_db_version SET version_id = 0"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	refused()
}
