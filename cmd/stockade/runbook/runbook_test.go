//go:build services

package runbook_test

import (
	"testing"
	"time"
)

// Every procedure is followed as it is written: its fault is made, its commands are run, what it says of success is
// compared with what is printed, and what it did is taken back.
func TestEveryProcedureDoesWhatItSays(t *testing.T) {
	s := newSite(t)
	begun := time.Now()
	pages := readPages(t)
	for _, p := range pages {
		follow(s, p)
	}
	t.Logf("followed %d pages in %v", len(pages), time.Since(begun).Round(time.Millisecond))
}

func follow(s *site, p page) {
	s.t.Helper()
	begun := time.Now()
	if p.drill != "" {
		make, known := drills[p.drill]
		if !known {
			s.t.Errorf("%s: there is no drill %q", p.name, p.drill)
			return
		}
		make(s)
	}
	if printed, err := s.bash(p.do); err != nil {
		s.t.Errorf("%s: what to do: %v\n%s", p.name, err, printed)
	}
	if !s.succeeds(p) {
		return
	}
	if printed, err := s.bash(p.back); err != nil {
		s.t.Errorf("%s: how to go back: %v\n%s", p.name, err, printed)
	}
	for deadline := time.Now().Add(settleBound); ; time.Sleep(pollEvery) {
		astray := s.astray()
		if astray == "" {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: afterwards %s", p.name, astray)
		}
	}
	s.t.Logf("%s: %v", p.name, time.Since(begun).Round(time.Millisecond))
}

// succeeds runs what tells of success, again while it does not and there is time.
func (s *site) succeeds(p page) bool {
	s.t.Helper()
	for deadline := time.Now().Add(settleBound); ; time.Sleep(pollEvery) {
		printed, err := s.bash(p.know)
		missing := p.missing(printed, s.variables)
		if err == nil && len(missing) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%s: how to know it worked: %v; not printed: %q\n%s", p.name, err, missing, printed)
			return false
		}
	}
}
