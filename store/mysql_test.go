//go:build services

package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/store"
	"stockade/store/storetest"
)

func TestMySQL(t *testing.T) {
	cfg, raw := newDatabase(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		for _, table := range []string{"event", "orders", "outbox", "ledger", "sku"} {
			if _, err := raw.Exec("DELETE FROM " + table); err != nil {
				t.Fatal(err)
			}
		}
		return storetest.Subject{DB: openMySQL(t, cfg), Raw: raw}
	})
}

func openMySQL(t testing.TB, cfg store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), cfg, store.Options{Node: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// newDatabase creates and migrates a database of the test's own, which is dropped at its end.
func newDatabase(t testing.TB) (store.Config, *sql.DB) {
	t.Helper()
	dsn := serverDSN(t)
	server, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("store_%d_%d", os.Getpid(), time.Now().UnixNano())
	if _, err := server.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatalf("STOCKADE_TEST_MYSQL: %v", err)
	}
	dsn.DBName = name
	cfg := store.DefaultConfig()
	cfg.Dialect, cfg.DSN = store.MySQL, dsn.FormatDSN()
	if err := store.Migrate(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	dsn.InterpolateParams = true
	raw, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := server.Exec("DROP DATABASE " + name); err != nil {
			t.Error(err)
		}
		for _, pool := range []*sql.DB{raw, server} {
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return cfg, raw
}

func serverDSN(t testing.TB) *mysql.Config {
	t.Helper()
	const name = "STOCKADE_TEST_MYSQL"
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: it names a MySQL server, as in root@tcp(127.0.0.1:3306)/ (scripts/services.sh env)", name)
	}
	dsn, err := mysql.ParseDSN(value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return dsn
}
