package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"stockade/biz/sale"
)

// Bounds of the watcher.
const (
	activeFor    = 5 * time.Second       // a SKU without traffic for this long is no longer watched
	rememberFor  = 10 * time.Minute      // and forgotten after this long; Active knows nothing older
	maxActive    = 20_000                // SKUs watched at the same time; traffic on others goes without flags
	kicks        = 256                   // SKUs that may wait for an early look
	looksAtOnce  = 8                     // SKUs read at the same time
	minKickEvery = 50 * time.Millisecond // early looks at one SKU
)

// Watcher reads the shares of the SKUs with traffic once a period, and early when a share ran empty, so that the flags
// know what is left and who won.
type Watcher struct {
	cfg       Config
	gate      Gate
	flags     Flags
	catalogue Catalogue
	log       *slog.Logger
	kick      chan string
	looks     singleflight.Group

	mu     sync.Mutex
	active map[string]*traffic
}

// traffic is when a SKU was last asked for and last looked at early.
type traffic struct{ seen, kicked time.Time }

// NewWatcher returns a watcher; Run does its work.
func NewWatcher(cfg Config, gate Gate, flags Flags, catalogue Catalogue, log *slog.Logger) *Watcher {
	return &Watcher{
		cfg: cfg, gate: gate, flags: flags, catalogue: catalogue, log: log,
		kick: make(chan string, kicks), active: map[string]*traffic{},
	}
}

// Touch says that somebody asked for the SKU.
func (w *Watcher) Touch(sku string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.active[sku]; ok {
		t.seen = now
	} else if len(w.active) < maxActive {
		w.active[sku] = &traffic{seen: now}
	}
}

// Kick asks for an early look at the SKU. It never blocks.
func (w *Watcher) Kick(sku string) {
	now := time.Now()
	w.mu.Lock()
	t, ok := w.active[sku]
	early := ok && now.Sub(t.kicked) >= minKickEvery
	if early {
		t.kicked = now
	}
	w.mu.Unlock()
	if !early {
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
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var skus []string
	for sku, t := range w.active {
		switch age := now.Sub(t.seen); {
		case age <= d:
			skus = append(skus, sku)
		case age > rememberFor:
			delete(w.active, sku)
		}
	}
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
	winners, err := w.gate.Winners(ctx, sku, shares)
	for _, found := range winners {
		w.flags.Winners(sku, found)
	}
	return err
}

func (w *Watcher) peek(ctx context.Context, l sale.Listing) error {
	figures, err := w.gate.Peek(ctx, l.ID, l.Slots)
	for _, f := range figures {
		w.flags.Note(l.ID, f)
	}
	return err
}
