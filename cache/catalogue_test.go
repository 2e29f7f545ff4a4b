package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/cache"
)

// truth is a loader's other side: listings whose epoch is a version, and a gate at which reads can be held up.
type truth struct {
	epoch atomic.Int64  // 0: the SKU does not exist
	fail  atomic.Bool   // reads fail
	begun chan string   // told at the start of each read, when not nil
	hold  chan struct{} // a read waits for one value after it saw the truth, when not nil
	reads atomic.Int64  // begun
	busy  atomic.Int64  // under way
	most  atomic.Int64  // highest busy
}

var errTrouble = errors.New("no connection")

func (tr *truth) load(ctx context.Context, sku string) (sale.Listing, error) {
	tr.reads.Add(1)
	busy := tr.busy.Add(1)
	defer tr.busy.Add(-1)
	for most := tr.most.Load(); busy > most && !tr.most.CompareAndSwap(most, busy); most = tr.most.Load() {
	}
	epoch, fail := tr.epoch.Load(), tr.fail.Load()
	if tr.begun != nil {
		tr.begun <- sku
	}
	if tr.hold != nil {
		select {
		case <-tr.hold:
		case <-ctx.Done():
			return sale.Listing{}, ctx.Err()
		}
	}
	switch {
	case fail:
		return sale.Listing{}, errTrouble
	case epoch == 0:
		return sale.Listing{}, sale.ErrNotFound
	}
	return sale.Listing{SKU: sale.SKU{ID: sku}, Ledger: sale.Ledger{Epoch: epoch}}, nil
}

func newCatalogue(t testing.TB, tr *truth, change func(*cache.Config)) (*cache.Catalogue, *clock) {
	t.Helper()
	clk := &clock{}
	c, err := cache.NewCatalogue(config(change), tr.load, clk.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, clk
}

// listing is an answer as a value, to be sent through channels.
type listing struct {
	epoch int64
	err   error
}

func ask(get func(context.Context, string) (sale.Listing, error), sku string) listing {
	l, err := get(context.Background(), sku)
	return listing{l.Ledger.Epoch, err}
}

// remembered waits until a listing is answered without a read: ristretto needs a moment.
func remembered(t *testing.T, c *cache.Catalogue, tr *truth, sku string) {
	t.Helper()
	eventually(t, "the listing is remembered", func() bool {
		before := tr.reads.Load()
		ask(c.Listing, sku)
		return tr.reads.Load() == before
	})
}

func TestListingLivesForItsLifetime(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, clk := newCatalogue(t, tr, nil)
	for range 20 {
		remembered(t, c, tr, "a")
		before := tr.reads.Load()
		clk.advance(799 * time.Millisecond)
		ask(c.Listing, "a")
		if tr.reads.Load() != before {
			t.Fatal("read again before 80 % of the lifetime")
		}
		clk.advance(201 * time.Millisecond)
		tr.epoch.Add(1)
		if got, want := ask(c.Listing, "a"), (listing{tr.epoch.Load(), nil}); got != want {
			t.Fatalf("got %+v after the lifetime, want %+v", got, want)
		}
	}
}

func TestCallersShareOneRead(t *testing.T) {
	const callers = 50
	tr := &truth{begun: make(chan string, callers), hold: make(chan struct{})}
	tr.epoch.Store(7)
	c, _ := newCatalogue(t, tr, nil)
	answers := make(chan listing, callers)
	for range callers {
		go func() { answers <- ask(c.Listing, "a") }()
	}
	receive(t, "a read begins", tr.begun)
	close(tr.hold)
	for range callers {
		if got := receive(t, "an answer", answers); got != (listing{7, nil}) {
			t.Fatalf("got %+v", got)
		}
	}
	if most := tr.most.Load(); most != 1 {
		t.Fatalf("%d reads of one SKU at once", most)
	}
}

func TestCallerLeavesEarlyAndTheReadGoesOn(t *testing.T) {
	tr := &truth{begun: make(chan string, 1), hold: make(chan struct{})}
	tr.epoch.Store(3)
	c, _ := newCatalogue(t, tr, nil)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		_, err := c.Listing(ctx, "a")
		left <- err
	}()
	receive(t, "a read begins", tr.begun)
	cancel()
	if err := receive(t, "the caller leaves", left); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	select {
	case tr.hold <- struct{}{}: // the read is still there to take it
	case <-time.After(patience):
		t.Fatal("the read was cut short with its caller")
	}
	close(tr.hold)
	tr.begun = nil
	remembered(t, c, tr, "a")
}

// A read that was under way when the world changed must satisfy nobody who came after the change.
func TestRefreshDoesNotTakeAnOlderRead(t *testing.T) {
	const callers = 20
	tr := &truth{begun: make(chan string, 100), hold: make(chan struct{})}
	tr.epoch.Store(1)
	c, _ := newCatalogue(t, tr, nil)
	old := make(chan listing, 1)
	go func() { old <- ask(c.Listing, "a") }()
	receive(t, "the old read begins", tr.begun)

	tr.epoch.Store(2)
	answers := make(chan listing, callers)
	var asked sync.WaitGroup
	for range callers {
		asked.Add(1)
		go func() {
			asked.Done()
			answers <- ask(c.Refresh, "a")
		}()
	}
	asked.Wait()
	tr.hold <- struct{}{} // the old read ends with what it saw
	if got := receive(t, "the old answer", old); got != (listing{1, nil}) {
		t.Fatalf("got %+v", got)
	}
	close(tr.hold)
	for range callers {
		if got := receive(t, "a fresh answer", answers); got != (listing{2, nil}) {
			t.Fatalf("Refresh answered %+v from a read that began before it", got)
		}
	}
	if most := tr.most.Load(); most != 1 {
		t.Fatalf("%d reads of one SKU at once", most)
	}
	if got := ask(c.Listing, "a"); got != (listing{2, nil}) {
		t.Fatalf("the old read came back: %+v", got)
	}
}

func TestForgetWhatIsRemembered(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, _ := newCatalogue(t, tr, nil)
	forgets := map[string]func(){
		"one":     func() { c.Forget("a") },
		"all":     func() { c.Forget("") },
		"refresh": func() { ask(c.Refresh, "a") },
	}
	for name, forget := range forgets {
		remembered(t, c, tr, "a")
		epoch := tr.epoch.Add(1)
		forget()
		if got := ask(c.Listing, "a"); got != (listing{epoch, nil}) {
			t.Errorf("%s: got %+v, want epoch %d", name, got, epoch)
		}
	}
}

func TestForgetDuringARead(t *testing.T) {
	for name, forget := range map[string]string{"one": "a", "all": ""} {
		t.Run(name, func(t *testing.T) {
			tr := &truth{begun: make(chan string, 100), hold: make(chan struct{})}
			tr.epoch.Store(1)
			c, _ := newCatalogue(t, tr, nil)
			old := make(chan listing, 1)
			go func() { old <- ask(c.Listing, "a") }()
			receive(t, "the old read begins", tr.begun)
			tr.epoch.Store(2)
			c.Forget(forget)
			close(tr.hold)
			receive(t, "the old answer", old)
			for range 100 {
				if got := ask(c.Listing, "a"); got != (listing{2, nil}) {
					t.Fatalf("got %+v after Forget", got)
				}
			}
		})
	}
}

func TestUnknownIsRememberedForAWhile(t *testing.T) {
	tr := &truth{}
	c, clk := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.NotFoundTTLMs = 300 })
	for range 100 {
		if got := ask(c.Listing, "guess"); !errors.Is(got.err, sale.ErrNotFound) {
			t.Fatalf("got %+v", got)
		}
	}
	if n := tr.reads.Load(); n != 1 {
		t.Fatalf("%d reads for one unknown SKU", n)
	}
	tr.epoch.Store(5)
	clk.advance(300 * time.Millisecond)
	if got := ask(c.Listing, "guess"); got != (listing{5, nil}) {
		t.Fatalf("got %+v when the time is over", got)
	}
}

// Once a SKU was found, the memory of its absence must not speak up again, even if ristretto dropped the listing.
func TestFoundEndsUnknown(t *testing.T) {
	tr := &truth{}
	c, _ := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.MaxListings = 1 })
	ask(c.Listing, "a")
	tr.epoch.Store(1)
	if got := ask(c.Refresh, "a"); got != (listing{1, nil}) {
		t.Fatalf("got %+v", got)
	}
	for i := range 200 { // push it out
		ask(c.Listing, fmt.Sprint("other-", i))
		if got := ask(c.Listing, "a"); got != (listing{1, nil}) {
			t.Fatalf("got %+v after it had been found", got)
		}
	}
}

func TestTroubleIsNotRemembered(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	tr.fail.Store(true)
	c, _ := newCatalogue(t, tr, nil)
	if got := ask(c.Listing, "a"); !errors.Is(got.err, errTrouble) {
		t.Fatalf("got %+v", got)
	}
	tr.fail.Store(false)
	if got := ask(c.Listing, "a"); got != (listing{1, nil}) {
		t.Fatalf("got %+v when the trouble is over", got)
	}
}

func TestReadsAreBounded(t *testing.T) {
	const limit = 3
	tr := &truth{begun: make(chan string, limit), hold: make(chan struct{})}
	tr.epoch.Store(1)
	c, _ := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.MaxLoads = limit })
	answers := make(chan listing, limit)
	for i := range limit {
		go func() { answers <- ask(c.Listing, fmt.Sprint("sku-", i)) }()
		receive(t, "a read begins", tr.begun)
	}
	if got := ask(c.Listing, "one-more"); !errors.Is(got.err, sale.ErrQueueFull) {
		t.Fatalf("got %+v", got)
	}
	close(tr.hold)
	for range limit {
		if got := receive(t, "an answer", answers); got != (listing{1, nil}) {
			t.Fatalf("got %+v", got)
		}
	}
	tr.begun = nil
	eventually(t, "there is room again", func() bool { return ask(c.Listing, "one-more") == listing{1, nil} })
}

func TestReadIsBoundedInTime(t *testing.T) {
	tr := &truth{hold: make(chan struct{})} // nobody lets it go
	c, _ := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.LoadTimeoutMs = 10 })
	answer := make(chan listing, 1)
	go func() { answer <- ask(c.Listing, "a") }()
	if got := receive(t, "the read is given up", answer); !errors.Is(got.err, context.DeadlineExceeded) {
		t.Fatalf("got %+v", got)
	}
}

func TestCloseEndsReads(t *testing.T) {
	tr := &truth{begun: make(chan string, 2), hold: make(chan struct{})}
	c, err := cache.NewCatalogue(cache.DefaultConfig(), tr.load, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan listing, 2)
	go func() { answers <- ask(c.Listing, "a") }()
	receive(t, "a read begins", tr.begun)
	c.Close()
	if got := receive(t, "the caller is told", answers); !errors.Is(got.err, context.Canceled) {
		t.Fatalf("got %+v", got)
	}
	if got := ask(c.Refresh, "a"); !errors.Is(got.err, sale.ErrShuttingDown) {
		t.Fatalf("got %+v after Close", got)
	}
}

// Whatever goes on at the same time: who asks after a change was announced hears of it.
func TestNoAnswerIsOlderThanWhatWasForgotten(t *testing.T) {
	const writers, readers, changes = 2, 4, 300
	tr := &truth{}
	tr.epoch.Store(1)
	c, _ := newCatalogue(t, tr, func(cfg *cache.Config) { cfg.MaxListings = 8 })
	var announced atomic.Int64
	var writing, reading sync.WaitGroup
	stop := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := range changes {
				epoch := tr.epoch.Add(1)
				switch (i + w) % 3 {
				case 0:
					c.Forget("a")
				case 1:
					c.Forget("")
				case 2:
					if got := ask(c.Refresh, "a"); got.err != nil || got.epoch < epoch {
						t.Errorf("Refresh after epoch %d: %+v", epoch, got)
					}
				}
				for old := announced.Load(); old < epoch && !announced.CompareAndSwap(old, epoch); old = announced.Load() {
				}
			}
		})
	}
	for range readers {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := announced.Load()
				if got := ask(c.Listing, "a"); got.err != nil || got.epoch < least {
					t.Errorf("asked after epoch %d was announced: %+v", least, got)
					return
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	if most := tr.most.Load(); most != 1 {
		t.Fatalf("%d reads of one SKU at once", most)
	}
}

func TestListingFromMemoryDoesNotAllocate(t *testing.T) {
	tr := &truth{}
	tr.epoch.Store(1)
	c, _ := newCatalogue(t, tr, nil)
	remembered(t, c, tr, "a")
	ctx := context.Background()
	if n := testing.AllocsPerRun(10_000, func() {
		if _, err := c.Listing(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Fatalf("%v allocations per answer", n)
	}
}
