//go:build services

package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/store/storetest"
)

// A ledger row that somebody sits on keeps its own takes from being decided, which say so, and nobody else's.
func TestMySQLLockedRow(t *testing.T) {
	cfg, raw := storetest.MySQL(t)
	db := openMySQL(t, cfg)
	for _, sku := range []string{"a", "b", "c"} {
		demoSKU(t, db, sku, 100)
	}
	tx, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT 1 FROM ledger WHERE sku = 'b' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var id byte
	for _, tt := range []struct {
		name string
		skus []string
		time time.Duration
	}{
		{"alone", []string{"b"}, 10 * time.Second},
		{"among others", []string{"a", "b", "c", "b"}, 10 * time.Second},
		{"the time ends at the second try", []string{"a", "b", "c"}, 1500 * time.Millisecond},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), tt.time)
		var takes []sale.Take
		for _, sku := range tt.skus {
			id++
			takes = append(takes, demoTake(sku, "buyer", id))
		}
		for i, d := range db.Promise(ctx, takes) {
			locked := d.Outcome == sale.NotTaken && errors.Is(d.Err, sale.ErrRowLocked)
			if stuck := takes[i].SKU == "b"; locked != stuck || (!stuck && d.Outcome != sale.Promised) {
				t.Errorf("%s, SKU %s: %v, %v", tt.name, takes[i].SKU, d.Outcome, d.Err)
			}
		}
		cancel()
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if d := db.Promise(t.Context(), []sale.Take{demoTake("b", "buyer", id+1)}); d[0].Outcome != sale.Promised {
		t.Errorf("given free: %v, %v", d[0].Outcome, d[0].Err)
	}
	for sku, want := range map[string]int64{"a": 2, "b": 1, "c": 2} {
		if n := promised(t, db, sku); n != want {
			t.Errorf("%d units of %s are promised, want %d", n, sku, want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if d := db.Promise(gone, []sale.Take{demoTake("a", "buyer", id+2)}); d[0].Outcome != sale.NotTaken || errors.Is(d[0].Err, sale.ErrRowLocked) {
		t.Errorf("no time, and no lock: %v, %v", d[0].Outcome, d[0].Err)
	}
}
