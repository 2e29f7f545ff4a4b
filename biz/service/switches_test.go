package service_test

import (
	"context"
	"errors"
	"sync"

	"stockade/biz/sale"
)

// switches keeps toggles for the nodes of a lab.
type switches struct {
	mu   sync.Mutex
	all  map[[2]string]sale.Toggle // by name and scope
	down bool
}

var errDown = errors.New("the store is down")

func (s *switches) Toggles(context.Context) ([]sale.Toggle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	all := make([]sale.Toggle, 0, len(s.all))
	for _, t := range s.all {
		all = append(all, t)
	}
	return all, nil
}

func (s *switches) SetToggle(_ context.Context, t sale.Toggle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	if s.all == nil {
		s.all = map[[2]string]sale.Toggle{}
	}
	s.all[[2]string{t.Name, t.Scope}] = t
	return nil
}

func (s *switches) ClearToggle(_ context.Context, name, scope string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errDown
	}
	delete(s.all, [2]string{name, scope})
	return nil
}

// fail makes the store go down, or come back.
func (s *switches) fail(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}
