//go:build services

package store_test

import (
	"context"
	"testing"

	"stockade/biz/sale"
	"stockade/store"
	"stockade/store/storetest"
)

func TestMySQL(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		for _, table := range []string{
			"event", "orders", "outbox", "ledger", "sku", "payment", "restock", "dead_letter", "outbox_archive", "closeout",
			"toggle", "audit",
		} {
			if _, err := raw.Exec("DELETE FROM " + table); err != nil {
				t.Fatal(err)
			}
		}
		faults := new(storetest.Faults)
		return storetest.Subject{DB: openMySQLWith(t, cfg, faults), Raw: raw, Faults: faults}
	})
}

func openMySQL(t testing.TB, cfg store.Config) *store.DB {
	t.Helper()
	return openMySQLWith(t, cfg, nil)
}

func openMySQLWith(t testing.TB, cfg store.Config, faults sale.Faults) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), cfg, store.Options{Node: "node-1", Faults: faults})
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
