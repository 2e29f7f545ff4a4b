package mq_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// frugal is an outbox that gives out fewer rows in one call than it is asked for, as a store may.
type frugal struct {
	mu                 sync.Mutex
	unsent             []sale.Order
	marked, looked     int
	notices, forgotten int
}

// atOnce is how many rows a frugal outbox gives out in one call.
const atOnce = 10

func (f *frugal) MarkSent(_ context.Context, ids []sale.OrderID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marked += len(ids)
	return nil
}

func (f *frugal) ClaimNew(context.Context, time.Duration, int) ([]sale.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(atOnce, len(f.unsent))
	out := f.unsent[:n:n]
	f.unsent = f.unsent[n:]
	return out, nil
}

func (f *frugal) RecheckSent(context.Context, time.Duration, int) (done, renewed int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(atOnce, 25-f.looked)
	f.looked += n
	return n / 2, n - n/2, nil
}

func (f *frugal) ClaimNotices(context.Context, time.Duration, int) ([]sale.Notice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []sale.Notice
	for ; len(out) < atOnce && f.notices < 25; f.notices++ {
		out = append(out, sale.Notice{Seq: int64(f.notices + 1), Topic: sale.TopicCreated})
	}
	return out, nil
}

func (f *frugal) DeleteNotices(_ context.Context, seqs []int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten += len(seqs)
	return nil
}

func (f *frugal) swept() [3]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return [3]int{f.marked, f.looked, f.forgotten}
}

// One wake-up of a sweeper deals with all that is overdue, however little the store gives out at once: after a broker
// was away for long, a batch for each wake-up would take hours.
func TestOneSweepTakesAllThatIsOverdue(t *testing.T) {
	cfg := mq.DefaultConfig()
	cfg.Driver = mq.DriverMemory
	cfg.NoticeSweepAfterMs, cfg.OutboxSweepAfterMs, cfg.OutboxRecheckAfterMs = 30, 3000, 300_000 // told apart by their waits
	var notices, unsent, sent atomic.Bool
	deps := mq.Deps{After: func(wait time.Duration) <-chan time.Time {
		woken := &sent
		switch {
		case wait < 100*time.Millisecond:
			woken = &notices
		case wait < 300*time.Millisecond: // the sweeper of what was missed, with nothing to do here
			return nil
		case wait < 3*time.Second:
			woken = &unsent
		}
		tick := make(chan time.Time, 1)
		if woken.CompareAndSwap(false, true) {
			tick <- time.Time{}
		}
		return tick
	}}
	outbox := &frugal{}
	for i := range 25 {
		outbox.unsent = append(outbox.unsent, sale.Order{
			ID: sale.OrderID{byte(i + 1)}, SKU: "shoe", Buyer: "ada", Quantity: 1, State: sale.OrderQueued,
			AcceptedAt: time.UnixMilli(1), ExpiresAt: time.UnixMilli(2),
		})
	}
	broker := mq.NewMemory(cfg, deps)
	relay := mq.NewRelay(cfg, deps, broker, outbox)
	relay.Start()
	want := [3]int{25, 25, 25}
	for deadline := time.Now().Add(10 * time.Second); outbox.swept() != want && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	relay.Close()
	if err := broker.Close(); err != nil {
		t.Error(err)
	}
	if got := outbox.swept(); got != want {
		t.Errorf("one wake-up marked, looked at and forgot %v rows, want %v", got, want)
	}
}
