package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stockade/store"
)

// MySQL creates and migrates a database of the test's own on the server that STOCKADE_TEST_MYSQL names, and drops it at
// the test's end. The pool reaches it past the store.
func MySQL(t testing.TB) (store.Config, *sql.DB) {
	t.Helper()
	dsn := serverDSN(t)
	server, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("stockade_test_%d_%d", os.Getpid(), time.Now().UnixNano())
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
