package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"stockade/biz/sale"
)

func validSKU(id string) sale.SKU {
	return sale.SKU{ID: id, Limit: 2, PaymentWindow: time.Minute, Slots: 4, ReservePct: 5}
}

func skus(t *testing.T, s Subject) {
	ctx := deadline(t)
	opens := time.Date(2026, 3, 1, 8, 0, 0, 123e6, time.UTC)
	full := sale.SKU{
		ID: "b", OpensAt: opens, ClosesAt: opens.Add(time.Hour), Limit: 3, PaymentWindow: 90 * time.Second,
		Slots: 32, ReservePct: 7, TokenRequired: true,
	}
	must(t, s.DB.CreateSKU(ctx, full, 500))
	must(t, s.DB.CreateSKU(ctx, validSKU("a"), 0))
	must(t, s.DB.CreateSKU(ctx, validSKU("A"), sale.MaxTotal)) // ids differ by case
	if err := s.DB.CreateSKU(ctx, full, 1); !errors.Is(err, sale.ErrExists) {
		t.Fatalf("created twice: %v", err)
	}
	var input *sale.InputError
	if err := s.DB.CreateSKU(ctx, validSKU("c"), -1); !errors.As(err, &input) || input.Field != "total" {
		t.Fatalf("a total of −1: %v", err)
	}
	if err := s.DB.CreateSKU(ctx, validSKU("{c}"), 1); !errors.As(err, &input) || input.Field != "sku" {
		t.Fatalf("an id with braces: %v", err)
	}
	got, err := s.DB.Listing(ctx, "b")
	must(t, err)
	full.State = sale.Draft
	want := sale.Listing{SKU: full, Ledger: sale.Ledger{Mode: sale.ModeRedis, State: sale.Steady, Total: 500}}
	if got != want {
		t.Fatalf("listing %+v, want %+v", got, want)
	}
	if _, err := s.DB.Listing(ctx, "none"); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("no listing: %v", err)
	}
	var ids []string
	for after := ""; ; after = ids[len(ids)-1] {
		page, err := s.DB.Listings(ctx, after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			ids = append(ids, l.ID)
		}
	}
	if len(ids) != 3 || ids[0] != "A" || ids[1] != "a" || ids[2] != "b" {
		t.Fatalf("listings %q", ids)
	}
	setStates(ctx, t, s)
}

func setStates(ctx context.Context, t *testing.T, s Subject) {
	reshare(t, s.DB, "a", 0, 0)
	must(t, s.DB.SetState(ctx, "a", sale.Open.MayBecome(), sale.Open))
	var wrong *sale.StateError
	err := s.DB.SetState(ctx, "a", sale.Open.MayBecome(), sale.Open)
	if !errors.As(err, &wrong) || wrong.State != sale.Open || wrong.SKU != "a" || wrong.Want == "" {
		t.Fatalf("opened twice: %v", err)
	}
	if err := s.DB.SetState(ctx, "none", nil, sale.Open); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("opened nothing: %v", err)
	}
	if l, err := s.DB.Listing(ctx, "a"); err != nil || l.State != sale.Open {
		t.Fatalf("%+v, %v", l, err)
	}
}

// The database itself refuses impossible books.
func checkConstraints(t *testing.T, s Subject) {
	newSKU(t, s.DB, "a", 10, 10)
	wantOutcomes(t, promise(t, s.DB, take("a", "u1", 4, 10)), sale.Promised)
	for _, impossible := range []string{
		"UPDATE ledger SET promised = 11", "UPDATE ledger SET promised = -1", "UPDATE ledger SET total = 3",
		"UPDATE ledger SET sold = 5", "UPDATE ledger SET sold = -1", "UPDATE ledger SET live_epoch = 2",
		"UPDATE outbox SET qty = 0", "UPDATE outbox SET id = NULL", "INSERT INTO outbox SELECT * FROM outbox",
	} {
		if _, err := s.Raw.Exec(impossible); err == nil {
			t.Errorf("the database took %q", impossible)
		}
	}
	wantBooks(t, s.DB, "a")
}

func decided(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 5000, 10)
	newSKU(t, s.DB, "b", 10, 10)
	var takes []sale.Take
	ids := []sale.OrderID{newID()}
	for i := range 1100 { // more than one query takes
		takes = append(takes, take("a", buyer(i), 1, 10))
		ids = append(ids, takes[len(takes)-1].Order)
	}
	other := take("b", "u1", 1, 10)
	ids = append(ids, other.Order, newID())
	for _, d := range promise(t, s.DB, append(takes, other)...) {
		if d.Outcome != sale.Promised {
			t.Fatalf("%+v", d)
		}
	}
	got, err := s.DB.Decided(ctx, "a", ids)
	must(t, err)
	if len(got) != len(takes) {
		t.Fatalf("%d of %d decided", len(got), len(takes))
	}
	for _, k := range takes {
		h := got[k.Order]
		if h.Seq == 0 || h.Token != k.Token || h.Share != k.Share || h.Quantity != 1 || h.Closed {
			t.Fatalf("take %+v is %+v", k, h)
		}
	}
	if got, err := s.DB.Decided(ctx, "a", nil); err != nil || len(got) != 0 {
		t.Fatalf("nothing asked: %v, %v", got, err)
	}
	if _, err := s.DB.Decided(ctx, "none", ids[:1]); !errors.Is(err, sale.ErrNotFound) {
		t.Fatalf("no SKU: %v", err)
	}
}

// A take whose promise is half-way is neither decided nor undecided: the answer waits until it is one of the two.
func decidedWaits(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 10, 10)
	id := newID()
	promising, err := s.Raw.Begin()
	must(t, err)
	_, err = promising.Exec("UPDATE ledger SET promised = promised + 1 WHERE sku = 'a'")
	must(t, err)
	_, err = promising.Exec(`INSERT INTO outbox
		(id, sku, buyer, qty, share, epoch, token, state, attempts, node, created_at, sent_at, expires_at)
		VALUES (?, 'a', 'u', 1, 0, 1, 1, 0, 0, '', 1, 1, 1)`, id[:])
	must(t, err)
	answer := make(chan error, 1)
	go func() {
		got, err := s.DB.Decided(ctx, "a", []sale.OrderID{id})
		if err == nil && len(got) != 1 {
			err = errors.New("the take was told to be undecided while its promise was half-way")
		}
		answer <- err
	}()
	// Only a wrong answer can come in this time; its absence proves nothing, and fails nothing.
	select {
	case err := <-answer:
		t.Errorf("answered before the promise ended: %v", err)
		must(t, promising.Rollback())
		return
	case <-time.After(200 * time.Millisecond):
	}
	must(t, promising.Commit())
	if err := <-answer; err != nil {
		t.Error(err)
	}
	wantBooks(t, s.DB, "a")
}
