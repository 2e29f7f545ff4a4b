//go:build services

package runbook_test

import (
	"testing"
	"time"
)

// Every drill is some page's.
func TestEveryDrillIsAskedFor(t *testing.T) {
	asked := map[string]bool{}
	for _, p := range readPages(t) {
		asked[p.drill] = true
	}
	for name := range drills {
		if !asked[name] {
			t.Errorf("no page asks for the drill %q", name)
		}
	}
}

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
	drill, known := drills[p.drill]
	if !known && p.drill != "" {
		s.t.Errorf("%s: there is no drill %q", p.name, p.drill)
		return
	}
	if drill.make != nil {
		drill.make(s)
	}
	if printed, err := s.bash(p.do); err != nil {
		s.t.Errorf("%s: what to do: %v\n%s", p.name, err, printed)
	}
	s.succeeds(p)
	if drill.mend != nil {
		drill.mend(s)
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
func (s *site) succeeds(p page) {
	s.t.Helper()
	for deadline := time.Now().Add(settleBound); ; time.Sleep(pollEvery) {
		printed, err := s.bash(p.know)
		missing := p.missing(printed, s.variables)
		if err == nil && len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%s: how to know it worked: %v; not printed: %q\n%s", p.name, err, missing, printed)
			return
		}
	}
}
