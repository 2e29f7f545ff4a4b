//go:build services

package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

// Somebody sits on the ledger row while buyers ask both nodes with the same key. Promises are rolled back and made again,
// by one node while the other one still tries: in the end the shares hold what the ledger says is left.
func TestStuckLedgerRow(t *testing.T) {
	t.Parallel() // mostly waits for sweepers
	const buyers = 150
	p := startPair(t)
	sku := p.create(100, 2, "--slots", "2", "--open")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 3 {
			tx, err := shop.db.Begin()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := tx.Exec("SELECT 1 FROM ledger WHERE sku = ? FOR UPDATE", sku); err != nil {
				t.Error(err)
			}
			<-time.After(1300 * time.Millisecond)
			_ = tx.Rollback()
			<-time.After(100 * time.Millisecond)
		}
	}()
	atOnce(2*buyers, func(i int) {
		p.buy(request{sku, fmt.Sprintf("b-%d", i/2), "k", 1}, 30, always(i%2))
	})
	<-over
	t.Logf("%v", p.told.codes[sku])
	t.Logf("sold %d", p.audit(sku))
}
