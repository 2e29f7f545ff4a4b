package store_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"stockade/biz/service"
	"stockade/store"
	"stockade/store/storetest"
)

// The ports that this package serves; those of package mq are checked there.
var (
	_ service.Promiser    = (*store.DB)(nil)
	_ service.Orders      = (*store.DB)(nil)
	_ service.Ledgers     = (*store.DB)(nil)
	_ service.Bookkeeper  = (*store.DB)(nil)
	_ service.Settlements = (*store.DB)(nil)
	_ service.DeadLetters = (*store.DB)(nil)
	_ service.Closeouts   = (*store.DB)(nil)
	_ service.ToggleStore = (*store.DB)(nil)
)

func TestSQLite(t *testing.T) { storetest.Run(t, openSQLite) }

func openSQLite(t *testing.T) storetest.Subject {
	cfg := store.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "odd name %41", "stockade.db")
	ctx := context.Background()
	if err := store.Migrate(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	faults := new(storetest.Faults)
	db, err := store.Open(ctx, cfg, store.Options{Node: "node-1", Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", "file:"+(&url.URL{Path: cfg.Path}).EscapedPath()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return storetest.Subject{DB: db, Raw: raw, Faults: faults}
}
