package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"stockade/biz/sale"
)

func checkLedger(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10, 10)
	orders := written(t, s, "a", 6)
	payRows(t, s, orders[:2]...)
	check := func(want sale.LedgerCheck, err error, got sale.LedgerCheck) {
		t.Helper()
		if err != nil || got != want {
			t.Fatalf("check %+v, %v, want %+v", got, err, want)
		}
	}
	sums := func(want sale.LedgerCheck) {
		t.Helper()
		got, err := s.DB.CheckLedger(ctx, "a")
		check(want, err, got)
	}
	correct := func(want sale.LedgerCheck) {
		t.Helper()
		got, err := s.DB.CorrectLedger(ctx, "a")
		check(want, err, got)
		sums(want)
	}
	changes := func() int64 {
		t.Helper()
		l, err := s.DB.Listing(ctx, "a")
		must(t, err)
		return l.Ledger.Changes
	}
	right := sale.LedgerCheck{Promised: 6, LiveUnits: 6, Sold: 2, PaidUnits: 2}
	before := changes()
	correct(right)
	if changes() != before {
		t.Fatal("a ledger that agrees was written")
	}
	for _, wrong := range []struct {
		promised, sold, moved int64
	}{{9, 2, 3}, {6, 0, 0}, {3, 3, 3}} {
		before := changes()
		_, err := s.Raw.Exec("UPDATE ledger SET sold = 0 WHERE sku = 'a'")
		must(t, err)
		_, err = s.Raw.Exec("UPDATE ledger SET promised = ? WHERE sku = 'a'", wrong.promised)
		must(t, err)
		_, err = s.Raw.Exec("UPDATE ledger SET sold = ? WHERE sku = 'a'", wrong.sold)
		must(t, err)
		sums(sale.LedgerCheck{Promised: wrong.promised, LiveUnits: 6, Sold: wrong.sold, PaidUnits: 2})
		correct(right)
		if moved := changes() - before; moved != wrong.moved {
			t.Fatalf("changes moved by %d for %+v", moved, wrong)
		}
	}
	// More than there is: no figure in the ledger can be right.
	_, err := s.Raw.Exec("UPDATE ledger SET promised = 4, total = 5 WHERE sku = 'a'")
	must(t, err)
	correct(sale.LedgerCheck{Promised: 4, LiveUnits: 6, Sold: 2, PaidUnits: 2})
	for what, err := range map[string]error{
		"check":   second(s.DB.CheckLedger(ctx, "none")),
		"correct": second(s.DB.CorrectLedger(ctx, "none")),
	} {
		if !errors.Is(err, sale.ErrNotFound) {
			t.Errorf("%s no SKU: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// While units are sold, a correction moves the ledger by the error that was in it and by nothing else.
func correctLedgerRace(t *testing.T, s Subject) {
	const sellers, each, wrong = 4, 15, 7
	newSKU(t, s.DB, "a", 1000, 1000)
	_, err := s.Raw.Exec("UPDATE ledger SET promised = ? WHERE sku = 'a'", wrong)
	must(t, err)
	ctx := deadline(t)
	together(sellers+2, func(i int) {
		if i >= sellers {
			if _, err := s.DB.CorrectLedger(ctx, "a"); err != nil {
				t.Error(err)
			}
			return
		}
		for range each {
			k := take("a", buyer(i), 1, 1000)
			if d := s.DB.Promise(ctx, []sale.Take{k}); d[0].Outcome != sale.Promised {
				t.Errorf("%+v", d[0])
			}
		}
	})
	if b := wantBooks(t, s.DB, "a"); b.Promised != sellers*each {
		t.Fatalf("books %+v", b)
	}
}

// askew is one order whose rows were put into a state of disagreement.
type askew struct {
	order sale.Order
	want  sale.Discrepancy // with "x" where a correction is offered
}

// disorder makes one order of every kind that a comparison tells apart, beside orders that agree.
func disorder(t *testing.T, s Subject) []askew {
	t.Helper()
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 1000, 10)
	newSKU(t, s.DB, "b", 1000, 10)
	_ = written(t, s, "b", 5)
	_ = written(t, s, "a", 5)
	_ = sell(t, s, "a", 5) // on their way
	sql := func(text string, args ...any) {
		t.Helper()
		_, err := s.Raw.Exec(text, args...)
		must(t, err)
	}
	rows := written(t, s, "a", 8)
	done := func(o sale.Order) { sql("UPDATE outbox SET state = 2 WHERE id = ?", o.ID[:]) }
	row := func(o sale.Order, state int) {
		sql("UPDATE orders SET state = ?, reason = ? WHERE id = ?", state, "CANCELLED", o.ID[:])
	}
	for _, i := range []int{0, 1, 2} {
		done(rows[i])
		sql("DELETE FROM orders WHERE id = ?", rows[i].ID[:])
	}
	closeOrder(t, s, rows[1], sale.ReasonCompensated)
	_, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: "m", SKU: "a", Order: &rows[2].ID})
	must(t, err)
	row(rows[3], 3)
	closeOrder(t, s, rows[4], sale.ReasonCancelled)
	done(rows[4])
	closeOrder(t, s, rows[5], sale.ReasonCancelled)
	done(rows[5])
	row(rows[5], 2)
	sql("UPDATE orders SET qty = qty + 1 WHERE id = ?", rows[6].ID[:])
	sql("UPDATE orders SET sku = 'b' WHERE id = ?", rows[7].ID[:])
	stranger := rows[0]
	stranger.ID, stranger.Buyer = newID(), "stranger"
	_, err = s.DB.InsertOrders(ctx, []sale.Order{stranger})
	must(t, err)
	all := []askew{
		{rows[0], sale.Discrepancy{Kind: sale.OrderMissing, Outbox: "DONE", Correction: "x"}},
		{rows[1], sale.Discrepancy{Kind: sale.OrderMissing, Outbox: "DONE CLOSED", Correction: "x"}},
		{rows[2], sale.Discrepancy{Kind: sale.OrderMissing, Outbox: "DONE"}},
		{rows[3], sale.Discrepancy{Kind: sale.ClosedDiffers, Outbox: "NEW", Row: sale.OrderClosed, Correction: "x"}},
		{rows[4], sale.Discrepancy{
			Kind: sale.ClosedDiffers, Outbox: "DONE CLOSED", Row: sale.OrderCreated, Correction: "x",
		}},
		{rows[5], sale.Discrepancy{Kind: sale.ClosedDiffers, Outbox: "DONE CLOSED", Row: sale.OrderPaid}},
		{rows[6], sale.Discrepancy{Kind: sale.FieldsDiffer, Outbox: "NEW", Row: sale.OrderCreated}},
		{rows[7], sale.Discrepancy{Kind: sale.FieldsDiffer, Outbox: "NEW", Row: sale.OrderCreated}},
		{stranger, sale.Discrepancy{Kind: sale.OrderStranger, Row: sale.OrderCreated}},
	}
	for i := range all {
		d := &all[i].want
		d.Order, d.Buyer, d.Quantity = all[i].order.ID, all[i].order.Buyer, all[i].order.Quantity
	}
	return all
}

// compare pages through both comparisons and returns what they found.
func compare(t *testing.T, s Subject, sku string, limit int) map[sale.OrderID]sale.Discrepancy {
	t.Helper()
	ctx := deadline(t)
	all := map[sale.OrderID]sale.Discrepancy{}
	keep := func(found []sale.Discrepancy) {
		for _, d := range found {
			if old, twice := all[d.Order]; twice {
				t.Errorf("found twice: %+v and %+v", old, d)
			}
			all[d.Order] = d
		}
	}
	for after := int64(0); ; {
		found, next, err := s.DB.CompareOutbox(ctx, sku, after, limit)
		must(t, err)
		keep(found)
		if next == 0 {
			break
		}
		if next <= after {
			t.Fatalf("the page after %d ends at %d", after, next)
		}
		after = next
	}
	after := sale.OrderCursor{}
	for more := true; more; {
		found, next, again, err := s.DB.CompareOrders(ctx, sku, after, limit)
		must(t, err)
		keep(found)
		after, more = next, again
	}
	return all
}

func compares(t *testing.T, s Subject) {
	want := disorder(t, s)
	for _, limit := range []int{1, 3, 1000} {
		got := compare(t, s, "a", limit)
		if len(got) != len(want) {
			t.Errorf("pages of %d: %d discrepancies, want %d: %+v", limit, len(got), len(want), got)
		}
		for _, w := range want {
			d := got[w.order.ID]
			if (d.Correction == "") != (w.want.Correction == "") {
				t.Errorf("correction %q of %+v", d.Correction, d)
			}
			d.Correction = w.want.Correction
			if d != w.want {
				t.Errorf("pages of %d: %+v, want %+v", limit, d, w.want)
			}
		}
	}
	// The order that calls itself one of SKU b is one that b does not know.
	got := compare(t, s, "b", 4)
	if d := got[want[7].order.ID]; len(got) != 1 || d.Kind != sale.FieldsDiffer || d.Correction != "" {
		t.Errorf("of the other SKU: %+v", got)
	}
}

func corrects(t *testing.T, s Subject) {
	ctx := deadline(t)
	all := disorder(t, s)
	_ = news(t, s)
	before := wantBooks(t, s.DB, "a")
	found := compare(t, s, "a", 100)
	for _, a := range all {
		d := found[a.order.ID]
		for round, want := range []bool{a.want.Correction != "", false} {
			got, err := s.DB.CorrectOrder(ctx, "a", d)
			if err != nil || got != want {
				t.Errorf("round %d of %+v: corrected %v, %v", round, d, got, err)
			}
		}
	}
	b := wantBooks(t, s.DB, "a")
	if b.Promised != before.Promised-all[3].order.Quantity {
		t.Errorf("books %+v, before %+v", b, before)
	}
	for i, want := range map[int]sale.Order{
		1: {State: sale.OrderClosed, Reason: sale.ReasonCompensated},
		3: {State: sale.OrderClosed, Reason: sale.ReasonCancelled},
		4: {State: sale.OrderClosed, Reason: sale.ReasonCancelled},
	} {
		o := all[i].order
		got, err := s.DB.Order(ctx, o.Buyer, o.ID)
		o.State, o.Reason = want.State, want.Reason
		if err != nil || got != o {
			t.Errorf("order %+v, %v, want %+v", got, err, o)
		}
	}
	const restocked = `SELECT COUNT(*) FROM restock r JOIN outbox o ON o.id = r.order_id AND o.closed_at = r.at
		WHERE r.order_id = ? AND r.credited_at IS NULL AND r.share = o.share AND r.taken = o.epoch AND r.epoch = 1
		AND r.qty = o.qty AND r.buyer = o.buyer AND r.sku = o.sku AND o.close_reason = r.reason`
	if n := count(t, s, restocked, all[3].order.ID[:]); n != 1 || count(t, s, "SELECT COUNT(*) FROM restock") != 1 {
		t.Errorf("%d restock rows of the order that was closed", n)
	}
	if got := news(t, s); fmt.Sprint(got) != fmt.Sprint([]sale.OrderID{all[1].order.ID, all[4].order.ID}) {
		t.Errorf("announced %v", got)
	}
	again, err := s.DB.ClaimNew(ctx, patience, 100)
	if err != nil || len(again) != 1 || again[0].ID != all[0].order.ID {
		t.Errorf("due again: %+v, %v", again, err)
	}
	for id, d := range compare(t, s, "a", 2) {
		if d.Correction != "" {
			t.Errorf("still to be corrected: %s %+v", id, d)
		}
	}
}

// What changed since the comparison is not corrected, and of corrections at the same time one counts.
func correctsOnce(t *testing.T, s Subject) {
	const rivals = 4
	ctx := deadline(t)
	all := disorder(t, s)
	found := compare(t, s, "a", 100)
	missing := all[0].order
	_, err := s.DB.InsertOrders(ctx, []sale.Order{missing})
	must(t, err)
	if got, err := s.DB.CorrectOrder(ctx, "a", found[missing.ID]); err != nil || got {
		t.Errorf("corrected an order that was written meanwhile: %v, %v", got, err)
	}
	if got, err := s.DB.CorrectOrder(ctx, "b", found[all[3].order.ID]); err != nil || got {
		t.Errorf("corrected an order of another SKU: %v, %v", got, err)
	}
	if _, err := s.DB.CorrectOrder(ctx, "none", found[all[3].order.ID]); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("corrected an order of no SKU: %v", err)
	}
	before := wantBooks(t, s.DB, "a")
	for _, i := range []int{1, 3, 4} {
		done := make([]bool, rivals)
		together(rivals, func(r int) {
			var err error
			if done[r], err = s.DB.CorrectOrder(ctx, "a", found[all[i].order.ID]); err != nil {
				t.Error(err)
			}
		})
		n := 0
		for _, d := range done {
			if d {
				n++
			}
		}
		if n != 1 {
			t.Errorf("order %d was corrected %d times", i, n)
		}
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != before.Promised-all[3].order.Quantity {
		t.Errorf("books %+v, before %+v", b, before)
	}
}

// An order that is being written or settled at this moment agrees, before and after: no comparison may catch it in between.
func comparesWhileSettling(t *testing.T, s Subject) {
	const settlers, orders, part = 3, 240, 8
	newSKU(t, s.DB, "a", 1000, 1000)
	all := sell(t, s, "a", orders)
	ctx := deadline(t)
	var settling sync.WaitGroup
	for w := range settlers {
		mine := all[w*orders/settlers : (w+1)*orders/settlers]
		settling.Go(func() {
			for chunk := range slices.Chunk(mine, part) {
				if refused, err := s.DB.InsertOrders(ctx, chunk); err != nil || refused != nil {
					t.Errorf("%v, %v", refused, err)
				}
				var changes []sale.Change
				for i, o := range chunk {
					if i%2 == 0 {
						changes = append(changes, cancel(o))
					} else {
						changes = append(changes, pay(o, o.ID.String()))
					}
				}
				for _, got := range s.DB.Settle(ctx, changes) {
					if got.Outcome != sale.Changed {
						t.Errorf("%+v", got)
					}
				}
			}
		})
	}
	settled := make(chan struct{})
	go func() { settling.Wait(); close(settled) }()
	for rounds := 0; ; rounds++ {
		if found := compare(t, s, "a", 50); len(found) != 0 {
			t.Fatalf("round %d: %+v", rounds, found)
		}
		if c, err := s.DB.CheckLedger(ctx, "a"); err != nil || !c.Agrees() {
			t.Fatalf("round %d: check %+v, %v", rounds, c, err)
		}
		select {
		case <-settled:
			if b := wantBooks(t, s.DB, "a"); !b.Agree() || b.Closed != orders/2 || b.Paid != orders/2 ||
				b.Uncredited != orders/2 || b.Orders != orders {
				t.Fatalf("books %+v", b)
			}
			return
		default:
		}
	}
}
