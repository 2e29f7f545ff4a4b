package storetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

func deadLetters(t *testing.T, s Subject) {
	ctx := deadline(t)
	id := newID()
	letter := sale.DeadLetter{
		MessageID: "m-1", SKU: "a", Order: &id, Error: "no room", Source: "order.create",
		ContentType: "application/json", Body: []byte{'{', 0, 0xff},
	}
	record := func() int64 {
		t.Helper()
		seq, err := s.DB.RecordDead(ctx, letter)
		must(t, err)
		return seq
	}
	read := func(seq int64) sale.DeadLetter {
		t.Helper()
		d, err := s.DB.DeadLetter(ctx, seq)
		must(t, err)
		return d
	}
	seq := record()
	first := read(seq)
	if first.At.IsZero() || first.Order == nil || *first.Order != id {
		t.Fatalf("recorded %+v", first)
	}
	want := letter
	want.Seq, want.State, want.Attempts, want.At, want.Order = seq, sale.DeadOpen, 1, first.At, first.Order
	same := func(a, b sale.DeadLetter) bool {
		body := bytes.Equal(a.Body, b.Body)
		a.Body, b.Body = nil, nil
		ids := a.Order != nil && b.Order != nil && *a.Order == *b.Order
		a.Order, b.Order = nil, nil
		return body && ids && a.MessageID == b.MessageID && a.State == b.State && a.Attempts == b.Attempts &&
			a.Error == b.Error && a.Source == b.Source && a.ContentType == b.ContentType && a.SKU == b.SKU &&
			a.At.Equal(b.At) && a.HandledBy == b.HandledBy && a.HandledAt.IsZero() == b.HandledAt.IsZero()
	}
	if !same(first, want) {
		t.Fatalf("read %+v, want %+v", first, want)
	}
	// Delivered twice while nobody dealt with it: one letter, as it was.
	letter.Error = "another reason"
	if again := record(); again != seq || !same(read(seq), want) {
		t.Fatalf("seq %d and %d: %+v", seq, again, read(seq))
	}
	must(t, s.DB.HandleDead(ctx, seq, sale.DeadReplayed, "ops"))
	if d := read(seq); d.State != sale.DeadReplayed || d.HandledBy != "ops" || d.HandledAt.IsZero() {
		t.Fatalf("replayed: %+v", d)
	}
	if err := s.DB.HandleDead(ctx, seq, sale.DeadCompensated, "ops"); !errors.Is(err, sale.ErrConflict) {
		t.Fatalf("handled twice: %v", err)
	}
	want.Error, want.Attempts = letter.Error, 2
	if again := record(); again != seq || !same(read(seq), want) {
		t.Fatalf("dead again: seq %d, %+v", again, read(seq))
	}
	must(t, s.DB.HandleDead(ctx, seq, sale.DeadCompensated, "ops"))
	done := read(seq)
	if again := record(); again != seq || !same(read(seq), done) || done.State != sale.DeadCompensated {
		t.Fatalf("dead after its compensation: %+v", read(seq))
	}
	var input *sale.InputError
	for field, err := range map[string]error{
		"state": s.DB.HandleDead(ctx, seq, sale.DeadOpen, "ops"),
		"actor": s.DB.HandleDead(ctx, seq, sale.DeadReplayed, ""),
	} {
		if !errors.As(err, &input) || input.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := s.DB.HandleDead(ctx, seq+1000, sale.DeadReplayed, "ops"); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("handled nothing: %v", err)
	}
	if _, err := s.DB.DeadLetter(ctx, seq+1000); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("read nothing: %v", err)
	}
}

// What nobody can read must still be kept, cut where it is too long.
func deadLettersOfAnyForm(t *testing.T, s Subject) {
	ctx := deadline(t)
	long := strings.Repeat("x", 5000)
	seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{
		MessageID: strings.Repeat("m", 128), SKU: "{no sku}", Error: long, Source: long, ContentType: long,
	})
	must(t, err)
	d, err := s.DB.DeadLetter(ctx, seq)
	must(t, err)
	if d.SKU != "" || d.Order != nil || len(d.Error) != 1024 || len(d.Source) != 255 || len(d.ContentType) != 255 ||
		len(d.Body) != 0 {
		t.Fatalf("kept %+v", d)
	}
	var input *sale.InputError
	for _, id := range []string{"", strings.Repeat("m", 129)} {
		_, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: id})
		if !errors.As(err, &input) || input.Field != "message_id" {
			t.Errorf("a message id of %d bytes: %v", len(id), err)
		}
	}
}

func deadLetterPages(t *testing.T, s Subject) {
	ctx := deadline(t)
	var all []int64
	for i := range 9 {
		seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{
			MessageID: buyer(i), SKU: []string{"a", "b", ""}[i%3], Body: []byte("body"),
		})
		must(t, err)
		all = append(all, seq)
		if i >= 6 {
			must(t, s.DB.HandleDead(ctx, seq, sale.DeadReplayed, "ops"))
		}
	}
	for _, c := range []struct {
		filter sale.DeadFilter
		want   []int64
	}{
		{sale.DeadFilter{}, all},
		{sale.DeadFilter{State: sale.DeadOpen}, all[:6]},
		{sale.DeadFilter{State: sale.DeadReplayed, SKU: "b"}, all[7:8]},
		{sale.DeadFilter{SKU: "a"}, []int64{all[0], all[3], all[6]}},
		{sale.DeadFilter{State: sale.DeadCompensated}, nil},
		{sale.DeadFilter{SKU: "none"}, nil},
	} {
		for _, limit := range []int{1, 4, 200} {
			f := c.filter
			f.Limit = limit
			var got []int64
			for {
				page, err := s.DB.DeadLetters(ctx, f)
				must(t, err)
				for _, d := range page {
					if len(d.Body) != 0 {
						t.Fatal("a list brings bodies")
					}
					got = append(got, d.Seq)
				}
				if len(page) < limit {
					break
				}
				f.After = page[len(page)-1].Seq
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", f, got, c.want)
			}
		}
	}
}

// Consumers that bury one message at once keep one letter.
func deadLetterRace(t *testing.T, s Subject) {
	const buriers = 6
	ctx := deadline(t)
	found := make([]int64, buriers)
	together(buriers, func(i int) {
		seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: "m", SKU: "a"})
		if err != nil {
			t.Error(err)
		}
		found[i] = seq
	})
	for _, seq := range found {
		if seq != found[0] || seq == 0 {
			t.Fatalf("letters %v", found)
		}
	}
	if n := count(t, s, "SELECT COUNT(*) FROM dead_letter"); n != 1 {
		t.Fatalf("%d letters", n)
	}
	handled := make([]error, buriers)
	together(buriers, func(i int) { handled[i] = s.DB.HandleDead(ctx, found[0], sale.DeadReplayed, "ops") })
	once := 0
	for _, err := range handled {
		if err == nil {
			once++
		} else if !errors.Is(err, sale.ErrConflict) {
			t.Error(err)
		}
	}
	if once != 1 {
		t.Errorf("handled %d times", once)
	}
}

// An order whose dead letter waits for an operator is not sent again; one whose letter is dealt with is.
func recheckLeavesDead(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	orders := sell(t, s, "a", 3)
	must(t, s.DB.MarkSent(ctx, ids(orders)))
	for i, o := range orders[:2] {
		seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: buyer(i), SKU: "a", Order: &o.ID})
		must(t, err)
		if i == 1 {
			must(t, s.DB.HandleDead(ctx, seq, sale.DeadReplayed, "ops"))
		}
	}
	age(t, s, time.Hour, orders...)
	done, renewed, err := s.DB.RecheckSent(ctx, time.Minute, 100)
	if err != nil || done != 1 || renewed != 2 {
		t.Fatalf("%d done, %d renewed, %v", done, renewed, err)
	}
}

// recheckOnce has every SENT row of these orders looked at.
func recheckOnce(t *testing.T, s Subject, orders ...sale.Order) (done, renewed int) {
	t.Helper()
	age(t, s, time.Hour, orders...)
	done, renewed, err := s.DB.RecheckSent(deadline(t), time.Minute, 100)
	must(t, err)
	return done, renewed
}

// A replay may be lost like any other message: while its letter was OPEN its row became DONE, and it must not stay that.
func replayedIsRechecked(t *testing.T, s Subject) {
	ctx := deadline(t)
	newSKU(t, s.DB, "a", 100, 10)
	orders := sell(t, s, "a", 5)
	lost, written, closed, twice, compensated := orders[0], orders[1], orders[2], orders[3], orders[4]
	must(t, s.DB.MarkSent(ctx, ids(orders)))
	letters := map[sale.OrderID]int64{}
	for i, o := range append(orders, twice) {
		seq, err := s.DB.RecordDead(ctx, sale.DeadLetter{MessageID: buyer(i), SKU: "a", Order: &o.ID})
		must(t, err)
		letters[o.ID] = seq
	}
	if done, renewed := recheckOnce(t, s, orders...); done != len(orders) || renewed != 0 {
		t.Fatalf("with OPEN letters %d done, %d renewed", done, renewed)
	}
	_, err := s.DB.InsertOrders(ctx, []sale.Order{written})
	must(t, err)
	closeOrder(t, s, closed, sale.ReasonCompensated)
	before := time.Now().Add(-time.Second).UnixMilli()
	for id, seq := range letters {
		to := sale.DeadReplayed
		if id == compensated.ID {
			to = sale.DeadCompensated
		}
		must(t, s.DB.HandleDead(ctx, seq, to, "ops"))
	}
	for what, want := range map[string]struct {
		order sale.Order
		state int64
	}{
		"lost": {lost, 1}, "written": {written, 2}, "closed": {closed, 2}, "with another OPEN letter": {twice, 2},
		"compensated": {compensated, 2},
	} {
		if n := count(t, s, "SELECT state FROM outbox WHERE id = ?", want.order.ID[:]); n != want.state {
			t.Errorf("the row of the order that is %s has state %d, want %d", what, n, want.state)
		}
	}
	if at := count(t, s, "SELECT sent_at FROM outbox WHERE id = ?", lost.ID[:]); at < before {
		t.Errorf("sent at %d, want about the time of the replay, after %d", at, before)
	}
	if done, renewed := recheckOnce(t, s, lost); done != 0 || renewed != 1 {
		t.Errorf("of the lost replay %d done, %d renewed", done, renewed)
	}
}
