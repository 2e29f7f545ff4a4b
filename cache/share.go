package cache

import (
	"slices"
	"sync/atomic"

	"stockade/biz/sale"
)

// reserveIndex is the reserve's place behind the slots.
const reserveIndex = sale.MaxSlots

// skuFlags is what is known of one SKU's shares.
type skuFlags struct {
	noted  atomic.Int64 // when there was news last
	shares [sale.MaxSlots + 1]shareFlags
}

type shareFlags struct {
	figures atomic.Pointer[figures]
	winners atomic.Pointer[winners]
}

// figures are a share's figures at a change number. Only until changes.
type figures struct {
	epoch, changes, left int64
	until                atomic.Int64 // end of the lifetime; 0 means out of effect
}

// winners are a share's winners at a change number.
type winners struct {
	epoch, changes int64
	hashes         []uint64 // sorted
}

func indexOf(s sale.Share) (int, bool) {
	if s == sale.Reserve {
		return reserveIndex, true
	}
	return int(s), s >= 0 && s < sale.MaxSlots
}

func shareAt(i int) sale.Share {
	if i == reserveIndex {
		return sale.Reserve
	}
	return sale.Share(i)
}

// always is a time at which figures are good whatever their lifetime; those out of effect have until 0.
const always = -1

func plausible(slots int) bool { return slots >= 1 && slots <= sale.MaxSlots }

// older tells whether news at an epoch and change number is older than what is held.
func older(epoch, changes, heldEpoch, heldChanges int64) bool {
	return epoch < heldEpoch || (epoch == heldEpoch && changes < heldChanges)
}

// note puts the figures in place, good until then, and tells whether they were news.
func (s *shareFlags) note(fig sale.Figures, until int64) bool {
	if fig.Gone {
		s.figures.Store(nil)
		return true
	}
	if fig.Sealed {
		until = 0
	}
	for {
		held := s.figures.Load()
		if held != nil {
			if older(fig.Epoch, fig.Changes, held.epoch, held.changes) {
				return false
			}
			if held.epoch == fig.Epoch && held.changes == fig.Changes && held.left == fig.Left {
				held.until.Store(until)
				return true
			}
		}
		next := &figures{epoch: fig.Epoch, changes: fig.Changes, left: fig.Left}
		next.until.Store(until)
		if s.figures.CompareAndSwap(held, next) {
			return true
		}
	}
}

// flag returns the share's winners if it is known to be empty and they are known, else nil.
func (s *shareFlags) flag(epoch, now int64) *winners {
	fig := s.figures.Load()
	if !fig.good(epoch, now) || fig.left != 0 {
		return nil
	}
	if w := s.winners.Load(); w.cover(fig) {
		return w
	}
	return nil
}

// left sums up what the shares have left; fresh is false when one of them is not known well enough.
func (s *skuFlags) left(epoch int64, slots int, now int64) (sum int64, fresh bool) {
	reserve := s.shares[reserveIndex].figures.Load()
	if !reserve.good(epoch, now) {
		return 0, false
	}
	sum = reserve.left
	for i := range slots {
		fig := s.shares[i].figures.Load()
		if !fig.good(epoch, now) {
			return 0, false
		}
		sum += fig.left
	}
	return sum, true
}

// void takes all figures out of effect.
func (s *skuFlags) void() {
	for i := range s.shares {
		if fig := s.shares[i].figures.Load(); fig != nil {
			fig.until.Store(0)
		}
	}
}

func (f *figures) good(epoch, now int64) bool {
	return f != nil && f.epoch == epoch && now < f.until.Load()
}

// cover tells whether everyone who had won at the time of the figures is among the winners.
func (w *winners) cover(f *figures) bool {
	return w != nil && w.epoch == f.epoch && w.changes >= f.changes
}

func (w *winners) has(hash uint64) bool {
	_, found := slices.BinarySearch(w.hashes, hash)
	return found
}

func (w *winners) count() int {
	if w == nil {
		return 0
	}
	return len(w.hashes)
}
