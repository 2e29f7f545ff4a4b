package service_test

import (
	"database/sql"
	"fmt"
	"testing"

	"stockade/biz/sale"
)

// damage runs statements on the database file itself.
func (l *lab) damage(t *testing.T, statements ...string) {
	t.Helper()
	raw, err := sql.Open("sqlite", l.store.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, s := range statements {
		done, err := raw.ExecContext(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%s: %d rows, %v", s, n, err)
		}
	}
}

// hexID is an order id as SQLite writes it.
func hexID(id sale.OrderID) string { return fmt.Sprintf("x'%x'", id[:]) }

// damaged is a SKU with six orders, of which one is paid, for tests to damage.
func damaged(t *testing.T) (*till, *testNode, sale.SKU, []sale.Order) {
	t.Helper()
	s, n, sku := openTill(t, 100, sale.SKU{Limit: 2, Slots: 4, ReservePct: 10})
	var orders []sale.Order
	for i := range 6 {
		orders = append(orders, s.mustBuy(t, n, sku.ID, fmt.Sprint("b", i), 2, true))
	}
	if d := s.lab.db.Settle(t.Context(), []sale.Change{{Kind: sale.Pay, Order: orders[0].ID, Payment: "p"}}); d[0].Outcome != sale.Changed {
		t.Fatalf("%+v", d)
	}
	s.lab.damage(t, "UPDATE outbox SET state = 2") // DONE, as a sweeper leaves them
	return s, n, sku, orders
}

func TestReconcileAgreesWithWholeBooks(t *testing.T) {
	_, n, sku, _ := damaged(t)
	r, err := n.skus.Reconcile(t.Context(), sku.ID, false)
	if err != nil || !r.Agrees || r.Differ != 0 || r.Gate == nil || r.Gate.Excess != 0 || r.Ledger != (sale.LedgerCheck{Promised: 12, LiveUnits: 12, Sold: 2, PaidUnits: 2}) {
		t.Errorf("%+v, %v", r, err)
	}
	audit, err := n.skus.Audit(t.Context(), sku.ID)
	if err != nil || !audit.Holds || audit.Full.Count != 1 {
		t.Errorf("audit %+v, %v", audit, err)
	}
}

// A dry run names exactly what was damaged and changes nothing; a fix mends it, and a second one has nothing to do.
func TestReconcileFindsAndMendsExactlyWhatIsWrong(t *testing.T) {
	s, n, sku, orders := damaged(t)
	s.lab.damage(t,
		"UPDATE ledger SET promised = promised + 5, sold = sold - 1 WHERE sku = '"+sku.ID+"'",
		"DELETE FROM orders WHERE id = "+hexID(orders[1].ID),
		"UPDATE outbox SET closed_at = 1, close_reason = 'CANCELLED' WHERE id = "+hexID(orders[2].ID),
	)
	if err := s.lab.raw.HIncrBy(t.Context(), s.lab.stockKey(sku.ID, 1), "left", 7).Err(); err != nil {
		t.Fatal(err)
	}
	before, err := s.lab.db.Listing(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.skus.Reconcile(t.Context(), sku.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if r.Agrees || r.Differ != 2 || r.Kinds[sale.OrderMissing] != 1 || r.Kinds[sale.ClosedDiffers] != 1 ||
		r.Ledger != (sale.LedgerCheck{Promised: 17, LiveUnits: 10, Sold: 1, PaidUnits: 2}) || r.Gate.Excess != -12 || r.Corrected != 0 {
		t.Errorf("dry run: %+v %+v", r, r.Gate)
	}
	after, err := s.lab.db.Listing(t.Context(), sku.ID)
	if err != nil || after != before {
		t.Errorf("a dry run changed %+v to %+v, %v", before, after, err)
	}
	if audit, err := n.skus.Audit(t.Context(), sku.ID); err != nil || audit.Holds || audit.Lost != 1 || audit.HalfClosed != 1 {
		t.Errorf("audit %+v, %v", audit, err)
	}

	if r, err = n.skus.Reconcile(t.Context(), sku.ID, true); err != nil || !r.Agrees || r.Corrected != 2 || !r.Reshared {
		t.Errorf("fix: %+v, %v", r, err)
	}
	if r, err = n.skus.Reconcile(t.Context(), sku.ID, true); err != nil || !r.Agrees || r.Differ != 0 || r.Corrected != 0 || r.Reshared {
		t.Errorf("once more: %+v, %v", r, err)
	}
	for i, want := range []sale.OrderState{sale.OrderPaid, "", sale.OrderClosed, sale.OrderCreated, sale.OrderCreated, sale.OrderCreated} {
		o, err := s.lab.db.Order(t.Context(), orders[i].Buyer, orders[i].ID)
		if err != nil || (want != "" && o.State != want) || o.State == sale.OrderPaid && i > 0 {
			t.Errorf("order %d: %+v, %v, want %s", i, o, err, want)
		}
	}
	if err := s.credited(t.Context(), sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
}
