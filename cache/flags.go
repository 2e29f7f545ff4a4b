package cache

import (
	"strings"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Flags is the node's memory of empty shares. Reading it takes no lock and allocates nothing.
//
// A flag is good for FlagLifetimeMs after the figures were noted, and only while the winners of the share are known as
// of a change number that is not below the figures': a winner who asks again must get to the gate.
type Flags struct {
	maxSKUs    int
	maxWinners int
	lifetime   int64
	clock      stopwatch
	skus       sync.Map // SKU id → *skuFlags

	mu      sync.Mutex // for who is in skus, and for winners
	count   int        // SKUs
	winners int        // hashes in all winners lists
	roomAt  int64      // no SKU can be evicted before
}

// NewFlags returns a memory without flags. now is its clock. The error is the one of Config.Validate.
func NewFlags(cfg Config, now func() time.Time) (*Flags, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Flags{
		maxSKUs: cfg.MaxFlaggedSKUs, maxWinners: cfg.MaxWinners,
		lifetime: int64(ms(cfg.FlagLifetimeMs)), clock: newStopwatch(now),
	}, nil
}

// Note remembers a share's figures as of now. Older news, by epoch and then by change number, is ignored; the same news
// again makes the figures young again. A share that is gone or sealed has no flag and no winners. A SKU that does not fit
// beside those with flags in effect goes without.
func (f *Flags) Note(sku string, fig sale.Figures) {
	i, ok := indexOf(fig.Share)
	if !ok {
		return
	}
	s := f.find(sku)
	if s == nil {
		if fig.Gone {
			return
		}
		f.mu.Lock()
		s = f.remember(sku)
		f.mu.Unlock()
		if s == nil {
			return
		}
	}
	now := f.clock.elapsed()
	s.noted.Store(now)
	current := s.shares[i].note(fig, now+f.lifetime)
	if current && (fig.Gone || fig.Sealed) && s.shares[i].winners.Load() != nil {
		f.mu.Lock()
		f.keep(s, i, nil)
		f.mu.Unlock()
	}
}

// Winners remembers who holds units in a share; older news is ignored. The hashes belong to Flags from here on. Winners
// that do not fit beside those of SKUs with flags in effect are not remembered.
func (f *Flags) Winners(sku string, w sale.Winners) {
	i, ok := indexOf(w.Share)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.remember(sku)
	if s == nil {
		return
	}
	held := s.shares[i].winners.Load()
	if held != nil && older(w.Epoch, w.Changes, held.epoch, held.changes) {
		return
	}
	more := len(w.Hashes) - held.count()
	for f.winners+more > f.maxWinners && f.evict(s) {
	}
	if f.winners+more <= f.maxWinners {
		f.keep(s, i, &winners{epoch: w.Epoch, changes: w.Changes, hashes: w.Hashes})
	}
}

// Standing answers a request of the buyer with this hash from memory; see sale.Standing. A keyed request, which may be a
// repetition, is not answered when the buyer is among the winners of the home share or the reserve.
func (f *Flags) Standing(sku string, epoch int64, slots int, buyerHash uint64, quantity int64, keyed bool) sale.Standing {
	s := f.find(sku)
	if s == nil || !plausible(slots) {
		return sale.AskGate
	}
	now := f.clock.elapsed()
	for _, i := range [...]int{int(sale.Home(buyerHash, slots)), reserveIndex} {
		if w := s.shares[i].flag(epoch, now); w == nil || (keyed && w.has(buyerHash)) {
			return sale.AskGate
		}
	}
	left, fresh := s.left(epoch, slots, now)
	switch {
	case !fresh:
		return sale.AskGate
	case left < quantity:
		return sale.FlaggedOut
	}
	return sale.FlaggedEmpty
}

// Unwatched lists the shares known empty whose winners are missing or out of date.
func (f *Flags) Unwatched(sku string, epoch int64) []sale.Share {
	s := f.find(sku)
	if s == nil {
		return nil
	}
	now := f.clock.elapsed()
	var missing []sale.Share
	for i := range s.shares {
		fig := s.shares[i].figures.Load()
		if fig.good(epoch, now) && fig.left == 0 && !s.shares[i].winners.Load().cover(fig) {
			missing = append(missing, shareAt(i))
		}
	}
	return missing
}

// Left is the sum of what is left in all shares; fresh is false, and left 0, when a share's figures are missing, of
// another epoch or older than a flag's lifetime.
func (f *Flags) Left(sku string, epoch int64, slots int) (left int64, fresh bool) {
	s := f.find(sku)
	if s == nil || !plausible(slots) {
		return 0, false
	}
	return s.left(epoch, slots, f.clock.elapsed())
}

// Remembered is the sum of what was left in all shares when they were last heard of, however long ago; known is false,
// and left 0, when a share's figures are missing or of another epoch.
func (f *Flags) Remembered(sku string, epoch int64, slots int) (left int64, known bool) {
	s := f.find(sku)
	if s == nil || !plausible(slots) {
		return 0, false
	}
	return s.left(epoch, slots, always)
}

// Clear takes the flags of a SKU, or of all with an empty id, out of effect until there is news. What was noted last
// still tells older news: an answer that was on its way while the stock came back cannot raise the flag again.
func (f *Flags) Clear(sku string) {
	if sku != "" {
		if s := f.find(sku); s != nil {
			s.void()
		}
		return
	}
	f.skus.Range(func(_, s any) bool {
		s.(*skuFlags).void()
		return true
	})
}

func (f *Flags) find(sku string) *skuFlags {
	if s, ok := f.skus.Load(sku); ok {
		return s.(*skuFlags)
	}
	return nil
}

// remember returns the SKU's flags, new ones if need be, or nil when there is no room. The caller holds mu.
func (f *Flags) remember(sku string) *skuFlags {
	if s := f.find(sku); s != nil {
		return s
	}
	if f.count >= f.maxSKUs && !f.evict(nil) {
		return nil
	}
	s := &skuFlags{}
	s.noted.Store(f.clock.elapsed())
	f.skus.Store(strings.Clone(sku), s) // the caller's may be a view of a request's buffer
	f.count++
	return s
}

// evict forgets the SKU that was noted longest ago, other than spared, if its flags are out of effect by now, and tells
// whether it did. Evicting younger ones would make SKUs push each other out, and none of them would have flags for long.
// The caller holds mu.
func (f *Flags) evict(spared *skuFlags) bool {
	now := f.clock.elapsed()
	if now < f.roomAt {
		return false
	}
	var oldest any
	var victim *skuFlags
	f.skus.Range(func(sku, v any) bool {
		if s := v.(*skuFlags); s != spared && (victim == nil || s.noted.Load() < victim.noted.Load()) {
			oldest, victim = sku, s
		}
		return true
	})
	if victim == nil {
		return false
	}
	if dead := victim.noted.Load() + f.lifetime; now < dead {
		f.roomAt = dead
		return false
	}
	for i := range victim.shares {
		f.keep(victim, i, nil)
	}
	f.skus.Delete(oldest)
	f.count--
	return true
}

// keep replaces a share's winners and counts them. The caller holds mu.
func (f *Flags) keep(s *skuFlags, i int, w *winners) {
	f.winners += w.count() - s.shares[i].winners.Load().count()
	s.shares[i].winners.Store(w)
}
