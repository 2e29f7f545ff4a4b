package limiter

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/google/uuid"

	"stockade/biz/sale"
)

const (
	// maxBreakers bounds the breakers of a node. A cluster whose masters keep changing their addresses makes the oldest lane's
	// go.
	maxBreakers = 512
	// rulesEvery is the pause between two looks at the rules file.
	rulesEvery = time.Second
)

// Breakers are the circuit breakers of one node.
type Breakers struct {
	parts    BreakerParts
	base     rulebook // of the configuration
	instance string   // begins the names in Sentinel, which are the whole process's
	chain    *base.SlotChain

	mu    sync.Mutex // guards what follows, and that rules are loaded one after the other
	file  rulesFile
	book  rulebook   // in force
	order []*Breaker // oldest first

	versions uint64 // of rules, counted up
}

// BreakerParts are what Breakers need.
type BreakerParts struct {
	// Forced is what an operator says of a breaker: sale.BreakerAuto, BreakerOpen or BreakerClosed. It is asked with every
	// call and must not block. Nil: always auto.
	Forced func(name string) string
	Log    *slog.Logger
}

// NewBreakers returns breakers that are closed. The errors are those of Config.Validate.
func NewBreakers(cfg Config, p BreakerParts) (*Breakers, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if p.Forced == nil {
		p.Forced = func(string) string { return sale.BreakerAuto }
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	book := cfg.rulebook()
	b := &Breakers{
		parts: p, base: book, book: book, instance: uuid.NewString(), chain: newChain(),
		file: rulesFile{path: cfg.BreakersFile},
	}
	b.Reload()
	for _, name := range []string{sale.BreakerOutbox, sale.BreakerPublish} {
		if _, err := b.get(name); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Lane is the breaker of the lane to one Redis master.
func (b *Breakers) Lane(master string) *Breaker { return b.named(sale.BreakerLane + master) }

// Outbox is the breaker before promises.
func (b *Breakers) Outbox() *Breaker { return b.named(sale.BreakerOutbox) }

// Publish is the breaker before the publishing of envelopes.
func (b *Breakers) Publish() *Breaker { return b.named(sale.BreakerPublish) }

func (b *Breakers) named(name string) *Breaker {
	one, err := b.get(name)
	if err != nil { // Sentinel refuses no rule that Validate lets through; should it, all calls pass
		b.parts.Log.Error("a breaker has no rule", "breaker", name, "error", err)
	}
	return one
}

// get finds a breaker, or makes it.
func (b *Breakers) get(name string) (*Breaker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.order {
		if one.name == name {
			return one, nil
		}
	}
	one := &Breaker{
		name: name, resource: b.instance + "/" + name, set: b,
		last: BreakerState{Name: name, State: sale.BreakerClosed},
	}
	if len(b.order) >= maxBreakers {
		oldest := slices.IndexFunc(b.order, func(o *Breaker) bool { return strings.HasPrefix(o.name, sale.BreakerLane) })
		b.order[oldest].forget()
		b.order = slices.Delete(b.order, oldest, oldest+1)
	}
	listening.add(one)
	b.order = append(b.order, one)
	return one, one.govern(b.book.of(name))
}

// List is the state of every breaker, by name.
func (b *Breakers) List() []BreakerState {
	b.mu.Lock()
	all := slices.Clone(b.order)
	b.mu.Unlock()
	states := make([]BreakerState, len(all))
	for i, one := range all {
		states[i] = one.State()
	}
	slices.SortFunc(states, func(x, y BreakerState) int { return strings.Compare(x.Name, y.Name) })
	return states
}

// Run looks at the rules file once a second, and logs what operators force, until ctx ends.
func (b *Breakers) Run(ctx context.Context) {
	tick := time.NewTicker(rulesEvery)
	defer tick.Stop()
	forced := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.Reload()
			forced = b.announceForces(forced)
		}
	}
}

// Reload takes over a changed rules file. One with a mistake is logged once, and the rules stay as they were.
func (b *Breakers) Reload() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file.path == "" {
		return
	}
	first := !b.file.looked
	text, changed, err := b.file.changed()
	if !changed {
		return
	}
	var book rulebook
	if err == nil {
		book, err = b.base.read(text)
	}
	if err != nil {
		b.parts.Log.Error("limiter.breakersFile is ignored, the rules stay as they were", "file", b.file.path, "error", err)
		return
	}
	b.book = book
	for _, one := range b.order {
		if err := one.govern(book.of(one.name)); err != nil {
			b.parts.Log.Error("a breaker has no rule", "breaker", one.name, "error", err)
		}
	}
	if !first || len(text) > 0 {
		b.parts.Log.Info("limiter.breakersFile read", "file", b.file.path)
	}
}

// Close takes the rules out of Sentinel. Breakers that are still asked allow everything.
func (b *Breakers) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.order {
		one.forget()
	}
}

func (b *Breakers) forced(name string) string { return b.parts.Forced(name) }

// announce logs a change of state.
func (b *Breakers) announce(s BreakerState, from string) {
	level := slog.LevelInfo
	if s.State == sale.BreakerOpen {
		level = slog.LevelWarn
	}
	b.parts.Log.Log(context.Background(), level, "breaker "+s.State, "breaker", s.Name, "from", from, "why", s.Why)
}

// announceForces logs breakers that an operator has taken over, or given back, since the look that found before. It returns
// those that are forced now.
func (b *Breakers) announceForces(before map[string]bool) map[string]bool {
	now := map[string]bool{}
	for _, s := range b.List() {
		if s.Forced != before[s.Name] {
			b.parts.Log.Warn("breaker "+s.State, "breaker", s.Name, "forced", s.Forced)
		}
		if s.Forced {
			now[s.Name] = true
		}
	}
	return now
}
