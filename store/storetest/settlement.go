package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

// written sells n orders of one unit and writes their order rows; the news about them is read and gone.
func written(t testing.TB, s Subject, sku string, n int) []sale.Order {
	t.Helper()
	orders := sell(t, s, sku, n)
	refused, err := s.DB.InsertOrders(t.Context(), orders)
	if err != nil || refused != nil {
		t.Fatal(refused, err)
	}
	for i := range orders {
		orders[i].State = sale.OrderCreated
	}
	notes(t, s)
	return orders
}

// notes reads and deletes all notices, in the order they were written.
func notes(t testing.TB, s Subject) (all []sale.Notice) {
	t.Helper()
	for {
		got, err := s.DB.ClaimNotices(t.Context(), 0, 500)
		must(t, err)
		if len(got) == 0 {
			return all
		}
		var done []int64
		for _, n := range got {
			done = append(done, n.Seq)
			n.Seq = 0
			all = append(all, n)
		}
		must(t, s.DB.DeleteNotices(t.Context(), done))
	}
}

// expire moves the end of orders' payment windows into the past.
func expire(t testing.TB, s Subject, orders ...sale.Order) {
	t.Helper()
	for _, o := range orders {
		for _, table := range []string{"orders", "outbox"} {
			_, err := s.Raw.Exec("UPDATE "+table+" SET expires_at = ? WHERE id = ?", o.AcceptedAt.UnixMilli()-1, o.ID[:])
			must(t, err)
		}
	}
}

func pay(o sale.Order, payment string) sale.Change {
	return sale.Change{Kind: sale.Pay, Order: o.ID, Payment: payment, Actor: "provider"}
}

func cancel(o sale.Order) sale.Change {
	return sale.Change{Kind: sale.Cancel, Order: o.ID, Buyer: o.Buyer, Actor: "buyer"}
}

func expiry(o sale.Order) sale.Change {
	return sale.Change{Kind: sale.Expire, Order: o.ID, Actor: "expiry"}
}

func compensation(o sale.Order) sale.Change {
	return sale.Change{Kind: sale.Compensate, Order: o.ID, Actor: "dead letter"}
}

func change(t testing.TB, s Subject, changes ...sale.Change) []sale.Settled {
	t.Helper()
	got := s.DB.Settle(deadlineOf(t), changes)
	if len(got) != len(changes) {
		t.Fatalf("%d outcomes for %d changes", len(got), len(changes))
	}
	return got
}

func wantSettled(t testing.TB, got []sale.Settled, want ...sale.ChangeOutcome) {
	t.Helper()
	var have []sale.ChangeOutcome
	for _, g := range got {
		have = append(have, g.Outcome)
	}
	if !slices.Equal(have, want) {
		t.Fatalf("outcomes %v, want %v; %+v", have, want, got)
	}
}

// wantSettlement checks what must hold of a SKU's rows between settlements.
func wantSettlement(t testing.TB, s Subject, sku string) {
	t.Helper()
	one := func(query string, args ...any) int64 { t.Helper(); return count(t, s, query, args...) }
	same := func(what string, a, b int64) {
		t.Helper()
		if a != b {
			t.Errorf("%s: %s: %d and %d", sku, what, a, b)
		}
	}
	same("promised and live units", one("SELECT promised FROM ledger WHERE sku = ?", sku),
		one("SELECT COALESCE(SUM(qty), 0) FROM outbox WHERE sku = ? AND closed_at IS NULL", sku))
	same("sold and paid units", one("SELECT sold FROM ledger WHERE sku = ?", sku),
		one("SELECT COALESCE(SUM(qty), 0) FROM orders WHERE sku = ? AND state = 2", sku))
	same("changes and units ever promised and ever closed", one("SELECT changes FROM ledger WHERE sku = ?", sku),
		one(`SELECT COALESCE(SUM(o.qty), 0) + COALESCE(SUM(r.qty), 0) FROM outbox o
			LEFT JOIN restock r ON r.order_id = o.id WHERE o.sku = ? AND (o.closed_at IS NULL OR r.seq IS NOT NULL)`, sku))
	for what, query := range map[string]string{
		"orders of which only one row is closed": `SELECT COUNT(*) FROM outbox o
			LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
			WHERE o.sku = ? AND (o.closed_at IS NULL AND COALESCE(r.state, 1) = 3
				OR o.closed_at IS NOT NULL AND COALESCE(r.state, 1) <> 3)`,
		"orders of which the rows give another reason": `SELECT COUNT(*) FROM outbox o
			JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
			WHERE o.sku = ? AND r.state = 3 AND r.reason <> o.close_reason`,
		"restocks that tell of something else": `SELECT COUNT(*) FROM restock r
			LEFT JOIN outbox o ON o.id = r.order_id AND o.sku = r.sku AND o.buyer = r.buyer AND o.qty = r.qty
				AND o.share = r.share AND o.epoch = r.taken AND o.close_reason = r.reason AND o.closed_at = r.at
			WHERE r.sku = ? AND o.id IS NULL`,
		"paid orders without the one payment that was taken": `SELECT COUNT(*) FROM orders r
			WHERE r.sku = ? AND r.state = 2
				AND (SELECT COUNT(*) FROM payment p WHERE p.order_id = r.id AND p.outcome = 1) <> 1`,
		"closed orders with a payment that was taken": `SELECT COUNT(*) FROM orders r
			JOIN payment p ON p.order_id = r.id AND p.outcome = 1 WHERE r.sku = ? AND r.state <> 2`,
	} {
		same(what, one(query, sku), 0)
	}
}

func settleOutcomes(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 6)
	queued := sell(t, s, "a", 2)
	unknown := sale.Order{ID: newID(), Buyer: "u"}
	expire(t, s, orders[1], orders[2])
	stranger := cancel(orders[0])
	stranger.Buyer = orders[1].Buyer

	got := change(t, s,
		pay(orders[0], "p0"), expiry(orders[1]), pay(orders[2], "p2"), cancel(orders[3]), expiry(orders[4]),
		cancel(unknown), pay(unknown, "px"), stranger, cancel(queued[0]), pay(queued[0], "pq"), expiry(queued[0]),
		compensation(queued[1]), compensation(orders[4]), compensation(unknown))
	wantSettled(t, got, sale.Changed, sale.Changed, sale.Changed, sale.Changed, sale.NotDue,
		sale.NoOrder, sale.NoOrder, sale.NoOrder, sale.StillQueued, sale.StillQueued, sale.StillQueued,
		sale.Changed, sale.Already, sale.NoOrder)
	for i, o := range []struct {
		at     int
		state  sale.OrderState
		reason sale.Reason
		order  sale.Order
	}{
		{0, sale.OrderPaid, "", orders[0]},
		{1, sale.OrderClosed, sale.ReasonPaymentTimeout, orders[1]},
		{2, sale.OrderPaid, "", orders[2]}, // paid past its window
		{3, sale.OrderClosed, sale.ReasonCancelled, orders[3]},
		{4, sale.OrderCreated, "", orders[4]},
		{8, sale.OrderQueued, "", queued[0]},
		{11, sale.OrderClosed, sale.ReasonCompensated, queued[1]},
	} {
		g := got[o.at].Order
		if g.ID != o.order.ID || g.State != o.state || g.Reason != o.reason || g.Buyer != o.order.Buyer || g.SKU != "a" {
			t.Errorf("case %d: the answer tells of %+v", i, g)
		}
		if now, err := s.DB.Order(t.Context(), o.order.Buyer, o.order.ID); err != nil || now != g {
			t.Errorf("case %d: the order is %+v, %v; the answer said %+v", i, now, err, g)
		}
	}
	for i, g := range got {
		closed := i == 1 || i == 3 || i == 11
		if closed != (g.Restock != nil) {
			t.Errorf("change %d: restock %+v", i, g.Restock)
		}
		if want := (sale.Restock{
			Order: g.Order.ID, SKU: "a", Buyer: g.Order.Buyer, Quantity: 1, Share: 1, Taken: 1, Epoch: 1,
		}); closed && *g.Restock != want {
			t.Errorf("change %d: restock %+v, want %+v", i, *g.Restock, want)
		}
	}
	wantSettlement(t, s, "a")
	l, err := s.DB.Listing(t.Context(), "a")
	must(t, err)
	if l.Ledger.Promised != 5 || l.Ledger.Sold != 2 || l.Ledger.Changes != 8+3 {
		t.Fatalf("ledger %+v", l.Ledger)
	}
	var told []string
	for _, n := range notes(t, s) {
		for _, o := range n.Orders {
			told = append(told, n.Topic+" "+string(o.State)+" "+string(o.Reason)+n.Payment)
		}
	}
	if want := []string{
		"order.paid PAID ", "order.paid PAID ", "order.closed CLOSED PAYMENT_TIMEOUT", "order.closed CLOSED CANCELLED",
		"order.closed CLOSED COMPENSATED",
	}; !slices.Equal(told, want) {
		t.Fatalf("notices %q", told)
	}
	// The consumer comes late: the compensated order stays closed, and nobody hears of it as created.
	_, err = s.DB.InsertOrders(t.Context(), queued)
	must(t, err)
	if got := news(t, s); !slices.Equal(got, ids(queued[:1])) {
		t.Fatalf("announced %v", got)
	}
	wantSettled(t, change(t, s, compensation(queued[1]), cancel(queued[0])), sale.Already, sale.Changed)
	wantSettlement(t, s, "a")
}

// Asking again answers the same way and writes nothing; payments are told apart by their ids.
func settleRepeats(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	o := written(t, s, "a", 3)
	first := change(t, s,
		pay(o[0], "p0"), pay(o[0], "p0"), cancel(o[0]), pay(o[0], "p1"), pay(o[0], "p1"), pay(o[1], "p1"),
		cancel(o[1]), cancel(o[1]), pay(o[1], "p2"), pay(o[1], "p0"), compensation(o[0]), compensation(o[1]),
		expiry(o[2]), pay(o[2], "p3"), expiry(o[2]))
	wantSettled(t, first,
		sale.Changed, sale.Already, sale.IsPaid, sale.RefundRequired, sale.RefundRequired, sale.PaymentReused,
		sale.Changed, sale.Already, sale.RefundRequired, sale.PaymentReused, sale.IsPaid, sale.Already,
		sale.NotDue, sale.Changed, sale.IsPaid)
	var refunds []string
	for _, n := range notes(t, s) {
		if n.Topic == sale.TopicRefundRequired {
			refunds = append(refunds, n.Payment+" "+n.Orders[0].ID.String()+" "+string(n.Orders[0].State))
		}
	}
	want := []string{"p1 " + o[0].ID.String() + " PAID", "p2 " + o[1].ID.String() + " CLOSED"}
	if !slices.Equal(refunds, want) {
		t.Fatalf("refunds %q, want %q", refunds, want)
	}
	wantSettled(t, change(t, s,
		pay(o[0], "p0"), pay(o[0], "p1"), pay(o[1], "p1"), cancel(o[1]), pay(o[1], "p2"), pay(o[1], "p0"),
		pay(o[2], "p3"), cancel(o[0])),
		sale.Already, sale.RefundRequired, sale.PaymentReused, sale.Already, sale.RefundRequired, sale.PaymentReused,
		sale.Already, sale.IsPaid)
	if got := notes(t, s); len(got) != 0 {
		t.Fatalf("repetitions were announced: %+v", got)
	}
	if n := count(t, s, "SELECT COUNT(*) FROM restock"); n != 1 {
		t.Fatalf("%d restocks", n)
	}
	wantSettlement(t, s, "a")
}

func settleBadData(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 40)
	var changes []sale.Change
	bad := map[int]bool{0: true, 17: true, 18: true, 39: true}
	for i, o := range orders {
		c := cancel(o)
		if bad[i] {
			c.Actor = strings.Repeat("x", 200)
		}
		changes = append(changes, c)
	}
	got := change(t, s, changes...)
	for i, g := range got {
		want := sale.Changed
		if bad[i] {
			want = sale.NotChanged
		}
		if g.Outcome != want || bad[i] != (g.Err != nil) {
			t.Errorf("change %d: %+v", i, g)
		}
	}
	got = change(t, s, pay(orders[0], ""), pay(orders[17], strings.Repeat("p", 129)), sale.Change{Order: orders[18].ID},
		pay(orders[39], strings.Repeat("p", 128)))
	wantSettled(t, got, sale.NotChanged, sale.NotChanged, sale.NotChanged, sale.Changed)
	wantSettlement(t, s, "a")
	if n := count(t, s, "SELECT COUNT(*) FROM restock"); n != 36 {
		t.Fatalf("%d restocks", n)
	}
}

// Rows that contradict each other are nobody's to settle, and keep neither the due ones nor their neighbours waiting.
func settleDisagreement(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 4)
	expire(t, s, orders...)
	closeOrder(t, s, orders[0], sale.ReasonCancelled) // its order row stays CREATED
	_, err := s.Raw.Exec("DELETE FROM outbox WHERE id = ?", orders[1].ID[:])
	must(t, err)
	due, err := s.DB.Due(t.Context(), 2)
	must(t, err)
	if !slices.Equal(sorted(due), ids(orders[2:])) {
		t.Fatalf("due %v", due)
	}
	got := change(t, s, expiry(orders[0]), pay(orders[0], "p"), expiry(orders[1]), expiry(orders[2]))
	wantSettled(t, got, sale.NotChanged, sale.NotChanged, sale.NoOrder, sale.Changed)
	if n := count(t, s, "SELECT COUNT(*) FROM restock"); n != 1 {
		t.Fatalf("%d restocks", n)
	}
}

// Behind a close-out the outbox row is in the archive, and the order row still decides.
func settleArchived(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 100, 10)
	orders := written(t, s, "a", 2)
	wantSettled(t, change(t, s, pay(orders[0], "p0"), cancel(orders[1])), sale.Changed, sale.Changed)
	_, err := s.Raw.Exec(`INSERT INTO outbox_archive
		SELECT seq, id, sku, buyer, qty, share, epoch, token, created_at, expires_at, closed_at, close_reason FROM outbox`)
	must(t, err)
	_, err = s.Raw.Exec("DELETE FROM outbox")
	must(t, err)
	notes(t, s)
	wantSettled(t, change(t, s, pay(orders[0], "p0"), cancel(orders[0]), cancel(orders[1]), pay(orders[1], "p1"),
		compensation(orders[1])),
		sale.Already, sale.IsPaid, sale.Already, sale.RefundRequired, sale.Already)
	if got := notes(t, s); len(got) != 1 || got[0].Payment != "p1" || got[0].Orders[0].ID != orders[1].ID {
		t.Fatalf("notices %+v", got)
	}
}

func restocks(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 2000, 10)
	newSKU(t, s.DB, "b", 2000, 10)
	orders := append(written(t, s, "a", 700), written(t, s, "b", 10)...)
	var changes []sale.Change
	for _, o := range orders {
		changes = append(changes, cancel(o))
	}
	for _, g := range change(t, s, changes...) {
		if g.Outcome != sale.Changed {
			t.Fatalf("%+v", g)
		}
	}
	var listed []sale.OrderID
	for after := int64(0); ; {
		page, err := s.DB.Restocks(t.Context(), 0, after, 300)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if r.Seq <= after || r.Taken != 1 || r.Epoch != 1 || r.Share != 1 || r.Quantity != 1 {
				t.Fatalf("%+v after %d", r, after)
			}
			after = r.Seq
			listed = append(listed, r.Order)
		}
	}
	if !slices.Equal(sorted(listed), sorted(ids(orders))) {
		t.Fatalf("%d listed", len(listed))
	}
	if young, err := s.DB.Restocks(t.Context(), time.Hour, 0, 10); err != nil || len(young) != 0 {
		t.Fatal(young, err)
	}
	must(t, s.DB.Credited(t.Context(), append(ids(orders[:650]), newID(), orders[0].ID)))
	for sku, want := range map[string]int64{"a": 50, "b": 10, "none": 0} {
		if n, err := s.DB.Uncredited(t.Context(), sku); err != nil || n != want {
			t.Errorf("%s: %d uncredited, %v, want %d", sku, n, err, want)
		}
	}
	left, err := s.DB.Restocks(t.Context(), 0, 0, 1000)
	must(t, err)
	if len(left) != 60 {
		t.Fatalf("%d left", len(left))
	}
}

func sorted(ids []sale.OrderID) []sale.OrderID {
	all := slices.Clone(ids)
	slices.SortFunc(all, func(a, b sale.OrderID) int { return slices.Compare(a[:], b[:]) })
	return all
}
