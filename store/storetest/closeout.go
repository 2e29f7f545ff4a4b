package storetest

import (
	"context"
	"errors"
	"testing"

	"stockade/biz/sale"
)

// payRows does what a settlement of a payment does to the rows.
func payRows(t *testing.T, s Subject, orders ...sale.Order) {
	t.Helper()
	for _, o := range orders {
		_, err := s.Raw.Exec("UPDATE orders SET state = 2 WHERE id = ?", o.ID[:])
		must(t, err)
		_, err = s.Raw.Exec("UPDATE ledger SET sold = sold + ? WHERE sku = ?", o.Quantity, o.SKU)
		must(t, err)
	}
}

func unfinished(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	newSKU(t, s.DB, "b", 100, 10)
	want := func(want sale.Unfinished) {
		t.Helper()
		if got, err := s.DB.Unfinished(ctx, "a"); err != nil || got != want {
			t.Fatalf("unfinished %+v, %v, want %+v", got, err, want)
		}
	}
	want(sale.Unfinished{})
	_ = written(t, s, "b", 4) // of another SKU
	orders := sell(t, s, "a", 6)
	want(sale.Unfinished{Queued: 6})
	_, err := s.DB.InsertOrders(ctx, orders)
	must(t, err)
	want(sale.Unfinished{Unpaid: 6})
	payRows(t, s, orders[:2]...)
	want(sale.Unfinished{Unpaid: 4})
	closeOrder(t, s, orders[2], sale.ReasonCancelled)
	want(sale.Unfinished{Unpaid: 4, Differ: 1})
	_, err = s.Raw.Exec("UPDATE orders SET state = 3 WHERE id = ?", orders[2].ID[:])
	must(t, err)
	want(sale.Unfinished{Unpaid: 3})
	_, err = s.Raw.Exec("UPDATE orders SET state = 3 WHERE id = ?", orders[3].ID[:])
	must(t, err)
	want(sale.Unfinished{Unpaid: 2, Differ: 1})
	_, err = s.Raw.Exec("DELETE FROM orders WHERE id = ?", orders[2].ID[:])
	must(t, err)
	want(sale.Unfinished{Unpaid: 2, Differ: 2})
	for i, sku := range []string{"a", "b", "a"} {
		seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: buyer(i), SKU: sku})
		must(t, err)
		if i == 2 {
			must(t, s.DB.HandleDead(ctx, seq, sale.DeadCompensated, "ops"))
		}
		_, err = s.Raw.Exec(`INSERT INTO restock
			(order_id, sku, buyer, qty, share, taken, epoch, reason, actor, at, credited_at)
			VALUES (?, ?, 'u', 5, 0, 1, 1, '', '', 1, ?)`, orders[i].ID[:], sku, []any{nil, nil, 1}[i])
		must(t, err)
	}
	want(sale.Unfinished{Unpaid: 2, Differ: 2, Uncredited: 1, DeadOpen: 1})
	if _, err := s.DB.Unfinished(ctx, "none"); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("of no SKU: %v", err)
	}
}

func closesOut(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 7)
	other := func() int64 { return count(t, s, "SELECT COUNT(*) FROM outbox WHERE sku = 'b'") }
	newSKU(t, s.DB, "b", 100, 10)
	_ = sell(t, s, "b", 3)
	payRows(t, s, orders[:4]...)
	for _, o := range orders[4:6] {
		closeOrder(t, s, o, sale.ReasonCancelled)
		_, err := s.Raw.Exec("UPDATE orders SET state = 3, reason = 'CANCELLED' WHERE id = ?", o.ID[:])
		must(t, err)
	}
	var state *sale.StateError
	for what, err := range map[string]error{
		"close out":      s.DB.CloseOut(ctx, "a", []byte("{}")),
		"archive":        archiveOnce(s, "a"),
		"archive closed": errors.Join(s.DB.SetState(ctx, "a", sale.Closed.MayBecome(), sale.Closed), archiveOnce(s, "a")),
	} {
		if !errors.As(err, &state) || state.SKU != "a" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.DB.CloseoutReport(ctx, "a"); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("a report before the close-out: %v", err)
	}
	// A unit that is promised and not paid for may not be forgotten.
	if err := s.DB.CloseOut(ctx, "a", []byte("{}")); !errors.Is(err, sale.ErrConflict) {
		t.Fatalf("closed out with an unpaid order: %v", err)
	}
	payRows(t, s, orders[6])
	before := wantBooks(t, s.DB, "a")
	report := []byte(`{"sold":5}`)
	must(t, s.DB.CloseOut(ctx, "a", report))
	if err := s.DB.CloseOut(ctx, "a", []byte("other")); !errors.As(err, &state) || state.State != sale.ClosedOut {
		t.Fatalf("closed out twice: %v", err)
	}
	if got, err := s.DB.CloseoutReport(ctx, "a"); err != nil || string(got) != string(report) {
		t.Fatalf("report %q, %v", got, err)
	}
	if l, err := s.DB.Listing(ctx, "a"); err != nil || l.State != sale.ClosedOut {
		t.Fatalf("%+v, %v", l, err)
	}
	late, direct := take("a", "late", 1, 10), take("a", "late", 1, 10)
	direct.Mode = sale.ModeMySQL
	wantOutcomes(t, promise(t, s.DB, late, direct), sale.Fenced, sale.Fenced)
	var moved []int
	for {
		n, err := s.DB.Archive(ctx, "a", 3)
		must(t, err)
		if after := wantBooks(t, s.DB, "a"); after != before || !after.Agree() {
			t.Fatalf("books %+v while archiving, before %+v", after, before)
		}
		if n == 0 {
			break
		}
		moved = append(moved, n)
	}
	if len(moved) != 3 || moved[0]+moved[1]+moved[2] != 7 || count(t, s, "SELECT COUNT(*) FROM outbox WHERE sku = 'a'") != 0 {
		t.Fatalf("moved %v", moved)
	}
	if other() != 3 {
		t.Fatalf("%d rows of another SKU are left", other())
	}
	readsArchived(t, s, orders)
}

func archiveOnce(s Subject, sku string) error {
	_, err := s.DB.Archive(context.Background(), sku, 10)
	return err
}

// readsArchived checks what is found of orders whose outbox rows are gone.
func readsArchived(t *testing.T, s Subject, orders []sale.Order) {
	t.Helper()
	ctx := deadline(t)
	for i, o := range orders {
		want := o
		if want.State = sale.OrderPaid; i == 4 || i == 5 {
			want.State, want.Reason = sale.OrderClosed, sale.ReasonCancelled
		}
		if got, err := s.DB.Order(ctx, o.Buyer, o.ID); err != nil || got != want {
			t.Errorf("order %+v, %v, want %+v", got, err, want)
		}
		if got, err := s.DB.AnyOrder(ctx, o.ID); err != nil || got != want {
			t.Errorf("order whose buyer is not known %+v, %v, want %+v", got, err, want)
		}
		if got, err := s.DB.Order(ctx, o.Buyer+"x", o.ID); !errors.Is(err, sale.ErrNotFound) {
			t.Errorf("order of another buyer %+v, %v", got, err)
		}
		if of, err := s.DB.OrdersOf(ctx, o.Buyer, sale.OrderID{}, 10); err != nil || len(of) == 0 || of[0] != want {
			t.Errorf("orders of %s: %+v, %v", o.Buyer, of, err)
		}
	}
	if got, err := s.DB.AnyOrder(ctx, newID()); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("an order that never was: %+v, %v", got, err)
	}
	if found, _, _, err := s.DB.CompareOrders(ctx, "a", sale.OrderCursor{}, 100); err != nil || len(found) != 0 {
		t.Errorf("archived orders are strangers: %+v, %v", found, err)
	}
	if c, err := s.DB.CheckLedger(ctx, "a"); err != nil || !c.Agrees() || c.PaidUnits != 5 {
		t.Errorf("check %+v, %v", c, err)
	}
	if u, err := s.DB.Unfinished(ctx, "a"); err != nil || !u.None() {
		t.Errorf("unfinished %+v, %v", u, err)
	}
}
