package service_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// post fakes the broker: it keeps what was replayed, or refuses it.
type post struct {
	sent []sale.DeadLetter
	err  error
}

func (p *post) Replay(_ context.Context, d sale.DeadLetter) error {
	if p.err == nil {
		p.sent = append(p.sent, d)
	}
	return p.err
}

func (s *till) burier(mode string, p *post) *service.Burier {
	cfg := s.lab.config
	cfg.DeadLetters = mode
	return service.NewBurier(cfg, s.lab.db, s.settler, p, s.trap, slog.New(slog.DiscardHandler))
}

func letterOf(id string, o *sale.Order) sale.DeadLetter {
	d := sale.DeadLetter{MessageID: id, Error: "poison", Source: "stockade.order.create", ContentType: "text/plain", Body: []byte("x")}
	if o != nil {
		d.Order, d.SKU = &o.ID, o.SKU
	}
	return d
}

// only is the one dead letter that there is.
func (s *till) only(t *testing.T) sale.DeadLetter {
	t.Helper()
	letters, err := s.lab.db.DeadLetters(t.Context(), sale.DeadFilter{Limit: 10})
	if err != nil || len(letters) != 1 {
		t.Fatalf("letters %+v, %v", letters, err)
	}
	return letters[0]
}

func (s *till) wantOrder(t *testing.T, o sale.Order, state sale.OrderState, reason sale.Reason) {
	t.Helper()
	seen, err := s.settler.AnyOrder(t.Context(), o.ID)
	if err != nil || seen.State != state || seen.Reason != reason {
		t.Errorf("order is %+v, %v, want %s %s", seen, err, state, reason)
	}
}

// A poison message is compensated once, however often it is delivered and wherever its node fails.
func TestBuryCompensates(t *testing.T) {
	for _, point := range []sale.Point{"", sale.DeadLetterRecorded, sale.SettlementCommitted, sale.DeadLetterCompensated} {
		t.Run(string(point), func(t *testing.T) {
			s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
			o := s.mustBuy(t, n, sku.ID, "ann", 1, false)
			b := s.burier(service.DeadLettersAuto, &post{})
			s.trap.at = point
			s.trap.armed.Store(1)
			err := b.Bury(t.Context(), letterOf("m1", &o))
			if failed := point == sale.DeadLetterRecorded || point == sale.DeadLetterCompensated; (err != nil) != failed {
				t.Errorf("first delivery: %v", err)
			}
			for range 2 {
				if err := b.Bury(t.Context(), letterOf("m1", &o)); err != nil {
					t.Errorf("delivered again: %v", err)
				}
			}
			if d := s.only(t); d.State != sale.DeadCompensated || d.HandledBy == "" {
				t.Errorf("the letter is %+v", d)
			}
			if point != "" && s.trap.seen.Load() == 0 {
				t.Error("the point was never reached")
			}
			s.wantOrder(t, o, sale.OrderClosed, sale.ReasonCompensated)
			if err := s.credited(t.Context(), sku.ID); err != nil {
				t.Error(err)
			}
			s.mustBalance(t, sku.ID)
			s.mustBuy(t, n, sku.ID, "bob", 1, true)
		})
	}
}

// What is not to be compensated, or cannot be, waits for an operator; a letter whose order is written is moot.
func TestBuryLeavesToAnOperator(t *testing.T) {
	s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
	queued := s.mustBuy(t, n, sku.ID, "ann", 1, false)
	written := s.mustBuy(t, n, sku.ID, "bob", 1, true)
	nobody := sale.Order{ID: sale.OrderID{1}, SKU: sku.ID}
	for name, tc := range map[string]struct {
		mode  string
		order *sale.Order
		want  sale.DeadState
	}{
		"manual":        {service.DeadLettersManual, &queued, sale.DeadOpen},
		"unreadable":    {service.DeadLettersAuto, nil, sale.DeadOpen},
		"unknown order": {service.DeadLettersAuto, &nobody, sale.DeadOpen},
		"written":       {service.DeadLettersAuto, &written, sale.DeadDropped},
	} {
		b := s.burier(tc.mode, &post{})
		if err := b.Bury(t.Context(), letterOf(name, tc.order)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		letters, err := b.List(t.Context(), sale.DeadFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range letters {
			if d.MessageID == name && d.State != tc.want {
				t.Errorf("%s: %+v, want %s", name, d, tc.want)
			}
		}
	}
	s.wantOrder(t, queued, sale.OrderQueued, "")
	s.wantOrder(t, written, sale.OrderCreated, "")
}

func TestReplay(t *testing.T) {
	s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
	o := s.mustBuy(t, n, sku.ID, "ann", 1, false)
	p := &post{err: sale.ErrUnavailable}
	b := s.burier(service.DeadLettersManual, p)
	ctx := t.Context()
	if err := b.Bury(ctx, letterOf("m1", &o)); err != nil {
		t.Fatal(err)
	}
	seq := s.only(t).Seq
	if _, err := b.Replay(ctx, seq, "operator ann"); !errors.Is(err, sale.ErrUnavailable) || s.only(t).State != sale.DeadOpen {
		t.Errorf("without a broker: %v, %+v", err, s.only(t))
	}
	p.err = nil
	d, err := b.Replay(ctx, seq, "operator ann")
	if err != nil || d.State != sale.DeadReplayed || d.HandledBy != "operator ann" || len(p.sent) != 1 || string(p.sent[0].Body) != "x" {
		t.Errorf("replay: %+v, %v, sent %+v", d, err, p.sent)
	}
	if _, err := b.Replay(ctx, seq, "operator ann"); !errors.Is(err, sale.ErrConflict) || len(p.sent) != 1 {
		t.Errorf("replay again: %v, sent %d times", err, len(p.sent))
	}
	if _, err := b.Drop(ctx, seq, "operator ann"); !errors.Is(err, sale.ErrConflict) {
		t.Errorf("drop of a replayed one: %v", err)
	}
	// It fails again, and the operator gives up.
	if err := b.Bury(ctx, letterOf("m1", &o)); err != nil || s.only(t).State != sale.DeadOpen || s.only(t).Attempts != 2 {
		t.Errorf("dead-lettered again: %+v, %v", s.only(t), err)
	}
	if d, err := b.Drop(ctx, seq, "operator bob"); err != nil || d.State != sale.DeadCompensated || d.HandledBy != "operator bob" {
		t.Errorf("drop: %+v, %v", d, err)
	}
	s.wantOrder(t, o, sale.OrderClosed, sale.ReasonCompensated)
	if _, err := b.Show(ctx, seq+1); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("show of none: %v", err)
	}
	if _, err := b.Replay(ctx, seq+1, "x"); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("replay of none: %v", err)
	}
}

func TestDrop(t *testing.T) {
	s, n, sku := openTill(t, 5, sale.SKU{Limit: 1, Slots: 1})
	written := s.mustBuy(t, n, sku.ID, "bob", 1, true)
	b := s.burier(service.DeadLettersManual, &post{})
	for _, d := range []sale.DeadLetter{letterOf("unreadable", nil), letterOf("written", &written)} {
		if err := b.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	letters, err := b.List(t.Context(), sale.DeadFilter{State: sale.DeadOpen, Limit: 10})
	if err != nil || len(letters) != 2 {
		t.Fatalf("%+v, %v", letters, err)
	}
	for _, d := range letters {
		if got, err := b.Drop(t.Context(), d.Seq, "operator"); err != nil || got.State != sale.DeadDropped {
			t.Errorf("drop of %s: %+v, %v", d.MessageID, got, err)
		}
	}
	s.wantOrder(t, written, sale.OrderCreated, "")
}
