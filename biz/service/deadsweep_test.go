package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// badMoment is a store whose settlements of some orders fail.
type badMoment struct {
	service.Settlements
	fails func(sale.OrderID) bool
}

func (b badMoment) Settle(ctx context.Context, changes []sale.Change) []sale.Settled {
	for _, c := range changes {
		if b.fails(c.Order) {
			all := make([]sale.Settled, len(changes))
			for i := range all {
				all[i] = sale.Settled{Outcome: sale.NotChanged, Err: errInjected}
			}
			return all
		}
	}
	return b.Settlements.Settle(ctx, changes)
}

// Letters that stayed OPEN are dealt with by the sweep, beyond the first page and past those that it cannot deal with.
func TestTheSweepCompensatesOpenLetters(t *testing.T) {
	const letters = 230 // a page has 200
	l := newLab(t)
	s, n, sku := openTillIn(t, l, letters+5, sale.SKU{Limit: 1, Slots: 1})
	ctx := t.Context()
	stuck := s.mustBuy(t, n, sku.ID, "stuck", 1, false)
	failing := true
	failed := 0
	bad := newTill(l, s.gate, badMoment{l.db, func(id sale.OrderID) bool {
		if id == stuck.ID && failing {
			failed++
		}
		return id == stuck.ID && failing
	}})
	t.Cleanup(bad.settler.Close)
	record := func(id string, o *sale.Order) {
		t.Helper()
		if _, err := l.db.RecordDead(ctx, letterOf(id, o)); err != nil {
			t.Fatal(err)
		}
	}
	record("stuck", &stuck)
	record("unreadable", nil)
	record("unknown", &sale.Order{ID: sale.OrderID{1}, SKU: sku.ID})
	written := s.mustBuy(t, n, sku.ID, "written", 1, true)
	record("written", &written)
	lost := s.promiseOrders(t, sku.ID, letters, sale.DefaultWindow)
	s.layOut(t, n, sku.ID)
	for i := range lost {
		record(fmt.Sprint("m", i), &lost[i])
	}
	b := bad.burier(service.DeadLettersAuto, &post{})
	for range 2 {
		if err := b.Round(ctx); err == nil {
			t.Error("the trouble with one order is not told")
		}
	}
	if failed != 2 {
		t.Errorf("%d tries of the order that will not close in 2 rounds", failed)
	}
	open := func() (ids string) {
		t.Helper()
		found, err := l.db.DeadLetters(ctx, sale.DeadFilter{State: sale.DeadOpen, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			ids += d.MessageID + " "
		}
		return ids
	}
	if got := open(); got != "stuck unreadable unknown " {
		t.Errorf("open are %s", got)
	}
	failing = false
	if err := b.Round(ctx); err != nil {
		t.Error(err)
	}
	if got := open(); got != "unreadable unknown " {
		t.Errorf("open are %s", got)
	}
	for _, o := range append(lost, stuck) {
		s.wantOrder(t, o, sale.OrderClosed, sale.ReasonCompensated)
	}
	s.wantOrder(t, written, sale.OrderCreated, "")
	if err := s.credited(ctx, sku.ID); err != nil {
		t.Error(err)
	}
	s.mustBalance(t, sku.ID)
}

// openLetters keeps dead letters in memory; handled ones are gone.
type openLetters struct {
	lettersOnly

	mu    sync.Mutex
	open  []sale.DeadLetter
	pages int
}

func (l *openLetters) DeadLetters(context.Context, sale.DeadFilter) ([]sale.DeadLetter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages++
	return l.open, nil
}

func (l *openLetters) HandleDead(context.Context, int64, sale.DeadState, string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = nil
	return nil
}

// seen tells how many letters are open, and how many pages were read.
func (l *openLetters) seen() (open, pages int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), l.pages
}

// The sweep comes every minute where letters are compensated automatically, and never where operators decide.
func TestTheSweepComesEveryMinute(t *testing.T) {
	for _, mode := range []string{service.DeadLettersAuto, service.DeadLettersManual} {
		synctest.Test(t, func(t *testing.T) {
			id := sale.OrderID{1}
			store := &slowStore{stuck: map[sale.OrderID]bool{id: true}, settled: sale.Settled{Outcome: sale.Changed, Order: sale.Order{State: sale.OrderClosed}}}
			cfg := service.DefaultConfig()
			cfg.DeadLetters = mode
			settler, _ := fakeTill(cfg, store)
			defer settler.Close()
			letters := &openLetters{open: []sale.DeadLetter{{Seq: 1, Order: &id}}}
			b := service.NewBurier(cfg, letters, settler, nil, sale.NoFaults{}, slog.New(slog.DiscardHandler))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go b.Sweep(ctx)
			<-time.After(150 * time.Second)
			synctest.Wait()
			open, pages := letters.seen()
			if want := map[string]int{service.DeadLettersAuto: 2}[mode]; pages != want {
				t.Errorf("%s: %d rounds in 150 s, want %d", mode, pages, want)
			}
			if open != 1 {
				t.Errorf("%s: an order that does not close has no letter any more", mode)
			}
			store.mu.Lock()
			store.stuck = nil
			store.mu.Unlock()
			<-time.After(time.Minute)
			synctest.Wait()
			if open, _ := letters.seen(); (open == 0) != (mode == service.DeadLettersAuto) {
				t.Errorf("%s: %d letters are open after the bad moment", mode, open)
			}
		})
	}
}

// A database that does not answer ends the round instead of being asked for every letter.
func TestTheSweepStopsWithoutADatabase(t *testing.T) {
	for _, down := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{stuck: map[sale.OrderID]bool{}}
			letters := &openLetters{lettersOnly: lettersOnly{down: down}}
			for i := range 5 {
				id := sale.OrderID{byte(i)}
				store.stuck[id] = true
				letters.open = append(letters.open, sale.DeadLetter{Seq: int64(i + 1), Order: &id})
			}
			settler, _ := fakeTill(service.DefaultConfig(), store)
			defer settler.Close()
			b := service.NewBurier(service.DefaultConfig(), letters, settler, nil, sale.NoFaults{}, slog.New(slog.DiscardHandler))
			if err := b.Round(t.Context()); err == nil {
				t.Error("no trouble")
			}
			if want := map[bool]int{true: 1, false: 5}[down]; len(store.groups) != want {
				t.Errorf("down %t: %d tries, want %d", down, len(store.groups), want)
			}
		})
	}
}
