//go:build services

package store_test

import (
	"context"
	"testing"

	"stockade/store"
	"stockade/store/storetest"
)

func TestMySQL(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
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
