package mqtest

import (
	"context"
	"errors"
	"sync"

	"stockade/biz/sale"
)

// ErrFault is what a point says that is told to fail.
var ErrFault = errors.New("fault at this point")

// Switches are the toggles and fault points of a test.
type Switches struct {
	mu      sync.Mutex
	paused  map[string]bool
	asked   map[string]int
	faults  map[sale.Point]int
	reached map[sale.Point]int
}

// NewSwitches pauses nothing and lets everything go on.
func NewSwitches() *Switches {
	return &Switches{
		paused: map[string]bool{}, asked: map[string]int{}, faults: map[sale.Point]int{}, reached: map[sale.Point]int{},
	}
}

// Pause pauses a toggle's work, or lets it run.
func (s *Switches) Pause(toggle string, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused[toggle] = paused
}

// Paused is mq.Deps.Paused.
func (s *Switches) Paused(toggle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[toggle]++
	return s.paused[toggle]
}

// Asked is how often somebody asked for a toggle.
func (s *Switches) Asked(toggle string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[toggle]
}

// Fail makes a point fail that many times.
func (s *Switches) Fail(p sale.Point, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[p] = times
}

// At implements sale.Faults.
func (s *Switches) At(_ context.Context, p sale.Point) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached[p]++
	if s.faults[p] > 0 {
		s.faults[p]--
		return ErrFault
	}
	return nil
}

// Reached is how often a point was reached.
func (s *Switches) Reached(p sale.Point) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached[p]
}
