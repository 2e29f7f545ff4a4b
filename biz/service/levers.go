package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"stockade/biz/sale"
)

// Bounds of the path toggle, which is kept in the ledgers.
const (
	pathPage        = 200                    // SKUs read at once
	maxPathSKUs     = 10_000                 // SKUs that a list or a change looks at
	pathsAtOnce     = 4                      // SKUs whose path changes at the same time
	pathBudget      = 60 * time.Second       // for a change of all SKUs; the others are left for another try
	pathListTimeout = 500 * time.Millisecond // for a list, which also serves without MySQL
)

// ToggleLedger is the source of a path: the SKU's ledger.
const ToggleLedger ToggleSource = "ledger"

// PathUnknown is the value of the path while MySQL cannot be asked.
const PathUnknown = "unknown"

// Paths reads and changes the paths of SKUs. SKUs implements it.
type Paths interface {
	// List reads SKUs in the order of their ids, after the given one.
	List(ctx context.Context, after string, limit int) ([]sale.Listing, error)
	// Get reads one; sale.ErrNotFound.
	Get(ctx context.Context, sku string) (sale.Listing, error)
	// Path sends a SKU's purchases one way or the other; see SKUs.Path.
	Path(ctx context.Context, sku string, mode sale.Mode) (sale.Listing, error)
}

// PathMove is what became of one SKU under a change of the path.
type PathMove struct {
	SKU   string `json:"sku"`
	Path  string `json:"path"`            // as it is now
	Error string `json:"error,omitempty"` // why it is not as it was to be
}

// Levers are the toggles as operators handle them: those that Toggles knows, and the path, which every SKU's ledger keeps
// and which therefore needs MySQL.
type Levers struct {
	toggles *Toggles
	paths   Paths
	log     *slog.Logger
}

// NewLevers returns the use case.
func NewLevers(toggles *Toggles, paths Paths, log *slog.Logger) *Levers {
	return &Levers{toggles: toggles, paths: paths, log: log}
}

// List returns every toggle as it is in effect on this node, by name and scope.
func (l *Levers) List(ctx context.Context) []ToggleState {
	states := l.toggles.List()
	for i, state := range states {
		if state.Name > sale.TogglePath {
			return append(states[:i:i], append(l.listPaths(ctx), states[i:]...)...)
		}
	}
	return append(states, l.listPaths(ctx)...)
}

// listPaths tells the path of most SKUs first, then those that go another way.
func (l *Levers) listPaths(ctx context.Context) []ToggleState {
	ctx, cancel := context.WithTimeout(ctx, pathListTimeout)
	defer cancel()
	listings, err := l.withStock(ctx)
	if err != nil {
		return []ToggleState{pathState("", PathUnknown)}
	}
	past := 0
	for _, listing := range listings {
		if listing.Ledger.Mode == sale.ModeMySQL {
			past++
		}
	}
	usual := sale.ModeRedis
	if past > 0 && past == len(listings) {
		usual = sale.ModeMySQL
	}
	states := []ToggleState{l.pathState("", usual)}
	for _, listing := range listings {
		if listing.Ledger.Mode != usual {
			states = append(states, l.pathState(listing.ID, listing.Ledger.Mode))
		}
	}
	return states
}

func pathState(scope, value string) ToggleState {
	kind, _ := sale.ToggleKindOf(sale.TogglePath)
	return ToggleState{
		Toggle: sale.Toggle{Name: kind.Name, Scope: scope, Value: value}, Source: ToggleLedger, Runbook: kind.Page(),
	}
}

// pathState is a path with the last word that was stored about it, if it still goes that way.
func (l *Levers) pathState(scope string, mode sale.Mode) ToggleState {
	words := l.toggles.current.Load().paths
	state := pathState(scope, string(mode))
	for _, from := range []string{scope, ""} {
		if word, ok := words[from]; ok && word.Value == state.Value {
			state.Reason, state.Actor, state.ChangedAt = word.Reason, word.Actor, word.ChangedAt
			return state
		}
	}
	if mode == sale.ModeRedis {
		state.Source = ToggleDefault
	}
	return state
}

// withStock lists the SKUs that have a path.
func (l *Levers) withStock(ctx context.Context) ([]sale.Listing, error) {
	var found []sale.Listing
	for after, seen := "", 0; seen < maxPathSKUs; {
		page, err := l.paths.List(ctx, after, pathPage)
		if err != nil {
			return nil, err
		}
		for _, listing := range page {
			if listing.State.HasStock() {
				found = append(found, listing)
			}
		}
		if len(page) < pathPage {
			break
		}
		after, seen = page[len(page)-1].ID, seen+len(page)
	}
	return found, nil
}

// Set changes a toggle for all nodes. For the path it moves the SKU, or every SKU with stock, and tells what became of
// each; a repetition goes on where it stopped. Errors: *sale.InputError, sale.ErrUnavailable, sale.ErrNotFound for a SKU that
// there is not; for the path of one SKU those of SKUs.Path too.
func (l *Levers) Set(ctx context.Context, toggle sale.Toggle) ([]PathMove, error) {
	if toggle.Name != sale.TogglePath {
		return nil, l.set(ctx, toggle)
	}
	if err := l.toggles.check(toggle); err != nil {
		return nil, err
	}
	if !toggle.Until.IsZero() {
		return nil, sale.BadInput("for", "must be left out: a path stays until it is changed")
	}
	moves, err := l.move(ctx, toggle.Scope, sale.Mode(toggle.Value))
	if err != nil {
		return nil, err
	}
	return moves, l.toggles.Set(ctx, toggle)
}

// set refuses to say something about a SKU that there is not: whoever mistypes one in a hurry has to hear it.
func (l *Levers) set(ctx context.Context, toggle sale.Toggle) error {
	if err := l.toggles.check(toggle); err != nil {
		return err
	}
	if toggle.Scope != "" {
		if _, err := l.paths.Get(ctx, toggle.Scope); err != nil {
			return unavailable(err)
		}
	}
	return l.toggles.Set(ctx, toggle)
}

// Clear forgets what is stored of a toggle, see Toggles.Clear; sale.ErrNotFound for a SKU that there is not.
func (l *Levers) Clear(ctx context.Context, name, scope string) error {
	if sale.ValidSKUID(scope) {
		if _, err := l.paths.Get(ctx, scope); err != nil {
			return unavailable(err)
		}
	}
	return l.toggles.Clear(ctx, name, scope)
}

func (l *Levers) move(ctx context.Context, sku string, mode sale.Mode) ([]PathMove, error) {
	if sku != "" {
		listing, err := l.paths.Path(ctx, sku, mode)
		return []PathMove{{SKU: sku, Path: string(listing.Ledger.Mode)}}, err
	}
	listings, err := l.withStock(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pathBudget)
	defer cancel()
	moves := make([]PathMove, len(listings))
	var group errgroup.Group
	group.SetLimit(pathsAtOnce)
	for i, listing := range listings {
		group.Go(func() error {
			moves[i] = l.moveOne(ctx, listing, mode)
			return nil
		})
	}
	_ = group.Wait() // each move tells for itself
	return moves, nil
}

func (l *Levers) moveOne(ctx context.Context, listing sale.Listing, mode sale.Mode) PathMove {
	m := PathMove{SKU: listing.ID, Path: string(listing.Ledger.Mode)}
	if ctx.Err() != nil {
		m.Error = "not reached in time; ask again"
		return m
	}
	now, err := l.paths.Path(ctx, listing.ID, mode)
	var state *sale.StateError
	switch {
	case err == nil:
		m.Path = string(now.Ledger.Mode)
	case errors.As(err, &state), errors.Is(err, sale.ErrConflict), errors.Is(err, sale.ErrNotFound):
		m.Error = err.Error()
	default:
		l.log.WarnContext(ctx, "path not changed", "sku", listing.ID, "path", string(mode), "error", err)
		m.Error = "a server did not answer; ask again"
	}
	return m
}
