package service_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// slowStore settles when it is let, with the outcomes that a test sets, and lists the due orders that a test sets.
type slowStore struct {
	service.Settlements
	gate chan struct{} // a settlement takes one; nil: none is held up

	mu      sync.Mutex
	groups  []int
	settled sale.Settled
	due     []sale.OrderID
	stuck   map[sale.OrderID]bool // never close
}

func (s *slowStore) Settle(ctx context.Context, changes []sale.Change) []sale.Settled {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, len(changes))
	all := make([]sale.Settled, len(changes))
	for i, c := range changes {
		all[i] = s.settled
		if s.stuck[c.Order] {
			all[i] = sale.Settled{Outcome: sale.NotChanged, Err: errInjected}
			continue
		}
		s.due = slices.DeleteFunc(s.due, func(id sale.OrderID) bool { return id == c.Order })
	}
	return all
}

func (s *slowStore) Due(_ context.Context, limit int) ([]sale.OrderID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.due[:min(limit, len(s.due))]), nil
}

func fakeTill(cfg service.Config, store service.Settlements) (*service.Settler, *service.Expirer) {
	log := slog.New(slog.DiscardHandler)
	creditor := service.NewCreditor(cfg, service.CreditorParts{Store: store, Faults: sale.NoFaults{}, Log: log})
	settler := service.NewSettler(cfg, store, nil, creditor, sale.NoFaults{}, nil)
	return settler, service.NewExpirer(cfg, store, settler, func() bool { return false }, log)
}

// What a caller is told tells whether anything can have changed.
func TestErrorsOfChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		settled sale.Settled
		want    error
	}{
		"rolled back":        {sale.Settled{Outcome: sale.NotChanged, Err: errInjected}, sale.ErrUnavailable},
		"commit unanswered":  {sale.Settled{Outcome: sale.ChangeUnknown, Err: errInjected}, service.ErrOutcomeUnknown},
		"without its reason": {sale.Settled{Outcome: sale.ChangeUnknown}, service.ErrOutcomeUnknown},
		"done":               {sale.Settled{Outcome: sale.Changed}, nil},
	} {
		store := &slowStore{settled: tc.settled}
		settler, _ := fakeTill(service.DefaultConfig(), store)
		_, err := settler.Pay(t.Context(), sale.OrderID{1}, "p")
		if !errors.Is(err, tc.want) || (tc.settled.Err != nil && !errors.Is(err, errInjected)) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		settler.Close()
		if _, err := settler.Cancel(t.Context(), sale.OrderID{1}, "", "x"); !errors.Is(err, sale.ErrShuttingDown) {
			t.Errorf("%s: after Close: %v", name, err)
		}
	}
}

// Under durability journal an order that MySQL does not have may be on its way.
func TestAnUnknownOrderMayBeOnItsWay(t *testing.T) {
	for journal, want := range map[bool]sale.ChangeOutcome{false: sale.NoOrder, true: sale.StillQueued} {
		store := &slowStore{settled: sale.Settled{Outcome: sale.NoOrder}}
		settler := service.NewSettler(service.DefaultConfig(), store, nil, nil, sale.NoFaults{}, func() bool { return journal })
		done, err := settler.Pay(t.Context(), sale.OrderID{1}, "p")
		if err != nil || done.Outcome != want {
			t.Errorf("journal %t: %+v, %v, want outcome %d", journal, done, err, want)
		}
		settler.Close()
	}
}

// While a settlement is held up, the next changes gather, the queue is bounded, and nobody waits for ever.
func TestTheSettlementQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := service.DefaultConfig()
		cfg.Settlers, cfg.SettleQueue, cfg.SettleGroup, cfg.ChangeTimeoutMs, cfg.SettleTimeoutMs = 1, 3, 10, 1000, 60_000
		store := &slowStore{gate: make(chan struct{}), settled: sale.Settled{Outcome: sale.Changed}}
		settler, _ := fakeTill(cfg, store)
		answers := make(chan error, 5)
		change := func() {
			go func() {
				_, err := settler.Cancel(t.Context(), sale.OrderID{1}, "", "x")
				answers <- err
			}()
			synctest.Wait()
		}
		for range 5 { // one is being settled, three wait, one is too many
			change()
		}
		if err := <-answers; !errors.Is(err, sale.ErrQueueFull) {
			t.Errorf("one too many: %v", err)
		}
		synctest.Wait()
		var unknown, unsent int
		for range 4 {
			switch err := <-answers; {
			case errors.Is(err, service.ErrOutcomeUnknown):
				unknown++
			case errors.Is(err, sale.ErrUnavailable):
				unsent++
			}
		}
		if unknown != 1 || unsent != 3 {
			t.Errorf("%d unknown and %d not sent, want 1 and 3", unknown, unsent)
		}
		close(store.gate)
		settler.Close()
		if !slices.Equal(store.groups, []int{1}) {
			t.Errorf("groups %v: changes whose callers had left were made", store.groups)
		}
	})
}

// The node closes orders at its rate, whoever asks for it.
func TestExpiryKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := service.DefaultConfig()
		cfg.SettleGroup, cfg.ExpiryPerSecond = 10, 100
		store := &slowStore{settled: sale.Settled{Outcome: sale.Changed}}
		for i := range 100 {
			store.due = append(store.due, sale.OrderID{byte(i)})
		}
		settler, expirer := fakeTill(cfg, store)
		defer settler.Close()
		began := time.Now()
		var both sync.WaitGroup
		both.Go(func() {
			if err := expirer.Expire(t.Context(), []sale.OrderID{{200}, {201}, {202}}); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := expirer.Round(t.Context()); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if took := time.Since(began); took < 900*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("103 orders took %v at 100 per second", took)
		}
		if len(store.due) != 0 {
			t.Errorf("%d orders are still due", len(store.due))
		}
	})
}

// Orders that will not close fill the first page, and those behind them are closed all the same.
func TestExpiryStepsOverStuckOrders(t *testing.T) {
	cfg := service.DefaultConfig()
	cfg.SettleGroup, cfg.ExpiryPerSecond = 4, 1_000_000
	store := &slowStore{settled: sale.Settled{Outcome: sale.Changed}, stuck: map[sale.OrderID]bool{}}
	for i := range 30 {
		store.due = append(store.due, sale.OrderID{byte(i)})
		store.stuck[sale.OrderID{byte(i)}] = i < 9
	}
	settler, expirer := fakeTill(cfg, store)
	defer settler.Close()
	if err := expirer.Round(t.Context()); !errors.Is(err, errInjected) {
		t.Errorf("trouble %v", err)
	}
	if len(store.due) != 9 {
		t.Errorf("%d orders are still due, want the 9 that will not close", len(store.due))
	}
}

// Restocks that do not fit into the creditor's queue are left to its sweeper, and nobody waits.
func TestOffersNeverBlock(t *testing.T) {
	cfg := service.DefaultConfig()
	cfg.CreditQueue = 2
	c := service.NewCreditor(cfg, service.CreditorParts{})
	c.Offer(make([]sale.Restock, 5))
	c.Offer(make([]sale.Restock, 5))
}

// deadStore is an interface whose name differs from that of its method.
type deadStore = service.DeadLetters

// lettersOnly keeps one dead letter, and may be out of reach.
type lettersOnly struct {
	deadStore
	down bool
}

func (l *lettersOnly) RecordDead(context.Context, sale.DeadLetter) (int64, error) { return 1, nil }

func (l *lettersOnly) DeadLetter(context.Context, int64) (sale.DeadLetter, error) {
	if l.down {
		return sale.DeadLetter{}, errInjected
	}
	return sale.DeadLetter{Seq: 1}, nil
}

// An order that can never be closed must not keep the other dead letters waiting; a database that is away must.
func TestBuryPassesWhatCannotBeClosed(t *testing.T) {
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			id := sale.OrderID{1}
			settler, _ := fakeTill(service.DefaultConfig(), &slowStore{stuck: map[sale.OrderID]bool{id: true}})
			defer settler.Close()
			b := service.NewBurier(service.DefaultConfig(), &lettersOnly{down: down}, settler, nil, sale.NoFaults{}, slog.New(slog.DiscardHandler))
			if err := b.Bury(t.Context(), sale.DeadLetter{MessageID: "m", Order: &id}); (err != nil) != down {
				t.Errorf("down %v: %v", down, err)
			}
		})
	}
}
