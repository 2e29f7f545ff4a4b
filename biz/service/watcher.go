package service

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"stockade/biz/sale"
)

// Bounds of the watcher.
const (
	activeFor    = 5 * time.Second        // a SKU without traffic for this long is no longer watched
	rememberFor  = 10 * time.Minute       // and forgotten after this long; Active knows nothing older
	maxActive    = 20_000                 // SKUs watched at the same time; traffic on others goes without flags
	kicks        = 256                    // SKUs that may wait for an early look
	looksAtOnce  = 8                      // SKUs read at the same time
	minKickEvery = 50 * time.Millisecond  // early looks at one SKU
	touchEvery   = 100 * time.Millisecond // how exactly it is known when a SKU was asked for
)

// Watcher reads the shares of the SKUs with traffic once a period, and early when a share ran empty, so that the flags
// know what is left and who won. For SKUs on path mysql it reads the ledger and the outbox instead.
type Watcher struct {
	cfg       Config
	gate      Gate
	ledgers   Ledgers
	flags     Flags
	catalogue Catalogue
	log       *slog.Logger
	start     time.Time
	kick      chan string
	looks     singleflight.Group

	active sync.Map     // SKU id → *traffic
	count  atomic.Int64 // entries of active
}

// traffic is when a SKU was last asked for and last looked at early, in nanoseconds since the watcher's start.
type traffic struct{ seen, kicked atomic.Int64 }

// WatcherParts are what a Watcher is made of.
type WatcherParts struct {
	Gate      Gate
	Ledgers   Ledgers
	Flags     Flags
	Catalogue Catalogue
	Log       *slog.Logger
}

// NewWatcher returns a watcher; Run does its work.
func NewWatcher(cfg Config, p WatcherParts) *Watcher {
	return &Watcher{
		cfg: cfg, gate: p.Gate, ledgers: p.Ledgers, flags: p.Flags, catalogue: p.Catalogue, log: p.Log,
		start: time.Now(), kick: make(chan string, kicks),
	}
}

// Touch says that somebody asked for the SKU. Every purchase does, so it takes no lock and seldom writes.
func (w *Watcher) Touch(sku string) {
	now := int64(time.Since(w.start))
	if t, ok := w.active.Load(sku); ok {
		if t := t.(*traffic); now-t.seen.Load() > int64(touchEvery) {
			t.seen.Store(now)
		}
		return
	}
	if w.count.Load() >= maxActive {
		return
	}
	t := &traffic{}
	t.seen.Store(now)
	t.kicked.Store(-int64(minKickEvery))
	if _, raced := w.active.LoadOrStore(strings.Clone(sku), t); !raced {
		w.count.Add(1)
	}
}

// Kick asks for an early look at the SKU. It never blocks.
func (w *Watcher) Kick(sku string) {
	found, ok := w.active.Load(sku)
	if !ok {
		return
	}
	t, now := found.(*traffic), int64(time.Since(w.start))
	last := t.kicked.Load()
	if now-last < int64(minKickEvery) || !t.kicked.CompareAndSwap(last, now) {
		return
	}
	select {
	case w.kick <- sku:
	default: // the next round looks at it
	}
}

// Left is the fresh sum over all shares; fresh is false when the gate cannot be read. Callers at the same time share
// one look.
func (w *Watcher) Left(ctx context.Context, l sale.Listing) (left int64, fresh bool) {
	if left, fresh = w.flags.Left(l.ID, l.Ledger.LiveEpoch, l.Slots); fresh {
		return left, true
	}
	look := w.looks.DoChan(l.ID, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), ms(w.cfg.PurchaseTimeoutMs))
		defer cancel()
		return nil, w.peek(ctx, l)
	})
	select {
	case <-look:
	case <-ctx.Done():
	}
	return w.flags.Left(l.ID, l.Ledger.LiveEpoch, l.Slots)
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(ms(w.cfg.PeekEveryMs))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case sku := <-w.kick:
			w.lookAll(ctx, []string{sku})
		case <-tick.C:
			w.lookAll(ctx, w.Active(activeFor))
		}
	}
}

// Active lists the SKUs asked for within the last d, at most rememberFor, and forgets older ones.
func (w *Watcher) Active(d time.Duration) []string {
	now := int64(time.Since(w.start))
	var skus []string
	w.active.Range(func(sku, t any) bool {
		switch age := time.Duration(now - t.(*traffic).seen.Load()); {
		case age <= d+touchEvery:
			skus = append(skus, sku.(string))
		case age > rememberFor:
			if _, there := w.active.LoadAndDelete(sku); there {
				w.count.Add(-1)
			}
		}
		return true
	})
	return skus
}

func (w *Watcher) lookAll(ctx context.Context, skus []string) {
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for _, sku := range skus {
		group.Go(func() error {
			if err := w.Look(ctx, sku); err != nil && ctx.Err() == nil {
				w.log.DebugContext(ctx, "shares not readable", "sku", sku, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // looks report for themselves
}

// Look reads a SKU's figures, then the winners of the shares that are empty.
func (w *Watcher) Look(ctx context.Context, sku string) error {
	ctx, cancel := context.WithTimeout(ctx, ms(w.cfg.PurchaseTimeoutMs))
	defer cancel()
	listing, err := w.catalogue.Listing(ctx, sku)
	if err != nil || !listing.Ledger.Live() {
		return err
	}
	if err := w.peek(ctx, listing); err != nil {
		return err
	}
	shares := w.flags.Unwatched(sku, listing.Ledger.LiveEpoch)
	if len(shares) == 0 {
		return nil
	}
	if listing.Ledger.Mode == sale.ModeMySQL {
		return w.ledgerWinners(ctx, sku)
	}
	winners, err := w.gate.Winners(ctx, sku, shares)
	for _, found := range winners {
		w.flags.Winners(sku, found)
	}
	return err
}

func (w *Watcher) peek(ctx context.Context, l sale.Listing) error {
	if l.Ledger.Mode == sale.ModeMySQL {
		_, err := w.readLedger(ctx, l.ID)
		return err
	}
	figures, err := w.gate.Peek(ctx, l.ID, l.Slots)
	for _, f := range figures {
		w.flags.Note(l.ID, f)
	}
	return err
}
