package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stockade/biz/sale"
)

// Bounds of toggles.
const (
	toggleFileEvery  = 500 * time.Millisecond // looks at the file, of which two have to agree
	toggleStoreEvery = 2 * time.Second        // reads of the store without a hint
	toggleHintEvery  = 250 * time.Millisecond // reads of the store for hints
	toggleTimeout    = time.Second            // one read of the store

	journalGrace = time.Minute // after durability journal, for what was acknowledged under it

	maxToggleActor = 128 // bytes
)

// ToggleHint is the hint that toggles changed. It is no SKU's id: a node that hears it has no reason to forget what it
// knows of SKUs, which it may need while MySQL is sick.
const ToggleHint = "!toggles"

// MaxToggleReason bounds the reason of a toggle, in bytes.
const MaxToggleReason = 1024

// Toggles knows every operator's switch. Its values come from a file of this node, which wins, then from the store, then
// from the defaults. Reading them takes no lock and works while every server is down.
type Toggles struct {
	parts   ToggleParts
	trouble *trouble
	current atomic.Pointer[toggleView]
	hinted  chan struct{}

	mu         sync.Mutex // guards what the view is made of
	file       toggleFile
	news       ToggleNews
	local      []sale.Toggle // of the file
	stored     []sale.Toggle
	carryUntil time.Time // end of the time in which acknowledged takes may still be on their way to MySQL
}

// ToggleParts are what Toggles are made of.
type ToggleParts struct {
	Store ToggleStore
	Hints Hints
	File  string // of this node, see parseToggles; empty: none
	Now   func() time.Time
	Log   *slog.Logger
}

// ToggleSource tells where a toggle's value comes from.
type ToggleSource string

// The sources of a toggle, the strongest last.
const (
	ToggleDefault ToggleSource = "default"
	ToggleStored  ToggleSource = "store"
	ToggleFile    ToggleSource = "file"
)

// ToggleState is a toggle as it is in effect on this node.
type ToggleState struct {
	sale.Toggle
	Source  ToggleSource `json:"source"`
	Runbook string       `json:"runbook"` // its page in conf/runbook
}

// NewToggles returns toggles at their defaults; Load and Run read the others. Nil Toggles are at their defaults too.
func NewToggles(p ToggleParts) *Toggles {
	t := &Toggles{parts: p, trouble: newTrouble(p.Log, p.Now), hinted: make(chan struct{}, 1)}
	t.news = ToggleNews{Path: p.File, State: ToggleFileAbsent}
	if p.File == "" {
		t.news.State = ToggleFileNone
	}
	t.rebuild()
	return t
}

// List returns every toggle for all SKUs, and those for one SKU that say something else, by name and scope.
func (t *Toggles) List() []ToggleState { return slices.Clone(t.current.Load().states) }

// Set stores a toggle for all nodes and has them look. What this node's file says still wins here. Errors:
// *sale.InputError, sale.ErrUnavailable.
func (t *Toggles) Set(ctx context.Context, toggle sale.Toggle) error {
	if err := t.check(toggle); err != nil {
		return err
	}
	if err := t.parts.Store.SetToggle(ctx, toggle); err != nil {
		return unavailable(err)
	}
	t.changed(ctx, toggle.Scope)
	return nil
}

// Clear forgets what is stored of a toggle for a SKU, or for all SKUs with an empty scope: the word for all SKUs, or the
// default, counts again. Errors are those of Set.
func (t *Toggles) Clear(ctx context.Context, name, scope string) error {
	kind, _ := sale.ToggleKindOf(name)
	switch err := (sale.Toggle{Name: name, Scope: scope, Value: kind.Default()}).Check(); {
	case err != nil:
		return err
	case name == sale.TogglePath:
		return sale.BadInput("name", "must not be path: it is set, to redis or mysql")
	}
	if err := t.parts.Store.ClearToggle(ctx, name, scope); err != nil {
		return unavailable(err)
	}
	t.changed(ctx, scope)
	return nil
}

// changed has every node look, this one at once.
func (t *Toggles) changed(ctx context.Context, scope string) {
	_ = t.parts.Hints.Send(ctx, ToggleHint) // without it the others look within toggleStoreEvery
	if err := t.readStore(ctx); err != nil {
		t.trouble.warn(ctx, "toggles not readable", scope, err)
	}
}

// check refuses what cannot be set: *sale.InputError.
func (t *Toggles) check(toggle sale.Toggle) error {
	if err := toggle.Check(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(toggle.Reason) == "" || len(toggle.Reason) > MaxToggleReason:
		return sale.BadInput("reason", fmt.Sprintf("must be 1 to %d bytes", MaxToggleReason))
	case toggle.Actor == "" || len(toggle.Actor) > maxToggleActor:
		return sale.BadInput("actor", fmt.Sprintf("must be 1 to %d bytes", maxToggleActor))
	case !toggle.Until.IsZero() && !toggle.Until.After(t.parts.Now()):
		return sale.BadInput("for", "must be longer than nothing")
	}
	return nil
}

// Hint says that something changed somewhere: Run reads the store soon. It never blocks.
func (t *Toggles) Hint() {
	select {
	case t.hinted <- struct{}{}:
	default:
	}
}

// Load reads the file and the store once. Trouble is logged, and leaves the values as they were.
func (t *Toggles) Load(ctx context.Context) {
	t.readFile(ctx, false)
	if err := t.readStore(ctx); err != nil && ctx.Err() == nil {
		t.trouble.warn(ctx, "toggles not readable", "", err)
	}
}

// Run keeps the values up to date until ctx ends. The file has a loop of its own: it must not wait for a store that does
// not answer.
func (t *Toggles) Run(ctx context.Context) {
	var file sync.WaitGroup
	file.Go(func() { t.watchFile(ctx) })
	t.watchStore(ctx)
	file.Wait()
}

func (t *Toggles) watchFile(ctx context.Context) {
	every(ctx, toggleFileEvery, func() {
		t.readFile(ctx, true)
		t.rebuild() // stored ones may have run out, also while the store is down
	})
}

func (t *Toggles) watchStore(ctx context.Context) {
	tick := time.NewTicker(toggleStoreEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.hinted:
			select { // hints come in crowds
			case <-ctx.Done():
				return
			case <-time.After(toggleHintEvery):
			}
		case <-tick.C:
		}
		if err := t.readStore(ctx); err != nil && ctx.Err() == nil {
			t.trouble.warn(ctx, "toggles not readable", "", err)
		}
	}
}

func (t *Toggles) readStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, toggleTimeout)
	defer cancel()
	all, err := t.parts.Store.Toggles(ctx)
	if err != nil {
		return err
	}
	var usable []sale.Toggle
	for _, toggle := range all {
		if bad := toggle.Check(); bad != nil { // a newer version's; ours must not guess
			t.trouble.warn(ctx, "a stored toggle is ignored", toggle.Scope, errors.Join(errors.New(toggle.Name), bad))
			continue
		}
		usable = append(usable, toggle)
	}
	t.mu.Lock()
	t.stored = usable
	t.mu.Unlock()
	t.rebuild()
	return nil
}

// readFile takes over a changed file. One with a mistake is logged once and leaves the values as they were.
func (t *Toggles) readFile(ctx context.Context, patient bool) {
	if t.parts.File == "" {
		return
	}
	version, fresh := t.file.next(t.parts.File, patient) // outside the lock: a disk may hang
	if !fresh {
		return
	}
	local, err := version.toggles()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.news.State, t.news.Error = ToggleFileBroken, err.Error()
		t.parts.Log.ErrorContext(ctx, "toggles.file is ignored, what it said before stays", "file", t.parts.File, "error", err)
		return
	}
	t.local = local
	t.news = ToggleNews{Path: t.parts.File, State: ToggleFileRead, Toggles: len(local), ChangedAt: version.modified}
	if !version.there {
		t.news.State = ToggleFileAbsent
	}
	t.parts.Log.InfoContext(ctx, "toggles.file read", "file", t.parts.File, "toggles", len(local))
	t.build()
}

// File tells what became of this node's toggles.file.
func (t *Toggles) File() ToggleNews {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.news
}

func (t *Toggles) rebuild() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.build()
}

// build makes the view. The caller holds mu.
func (t *Toggles) build() {
	now := t.parts.Now()
	current := slices.DeleteFunc(slices.Clone(t.stored), func(s sale.Toggle) bool {
		return !s.Until.IsZero() && !now.Before(s.Until)
	})
	view := newToggleView(t.local, current)
	if view.says(sale.ToggleDurability, sale.DurabilityJournal) {
		t.carryUntil = now.Add(journalGrace)
	}
	view.journal = now.Before(t.carryUntil)
	t.current.Store(view)
}
