package limiter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/limiter"
)

func TestBacklogHasHysteresis(t *testing.T) {
	cfg := limiter.DefaultConfig()
	cfg.BacklogMaxEvents = 1000
	var log bytes.Buffer
	var n int64
	var sick error
	forced, clock := sale.BreakerAuto, &standingClock{now: time.Unix(1_700_000_000, 0)}
	b := limiter.NewBacklog(cfg, limiter.BacklogParts{
		Count: func(_ context.Context, limit int64) (int64, error) {
			if limit != 1000 {
				t.Errorf("counts up to %d", limit)
			}
			return min(n, limit), sick
		},
		Forced: func(string) string { return forced },
		Now:    clock.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for i, step := range []struct {
		waiting int64
		sick    error
		open    bool
	}{
		{0, nil, false},
		{999, nil, false},
		{1000, nil, true},
		{5000, nil, true},
		{0, errors.New("down"), true},
		{0, errors.New("down"), true},
		{900, nil, true},
		{899, nil, false},
		{950, nil, false},
		{0, errors.New("down"), false},
		{1000, nil, true},
	} {
		n, sick = step.waiting, step.sick
		b.Look(t.Context())
		if got, known := b.Waiting(); known != (step.sick == nil) || (known && got != min(step.waiting, 1000)) {
			t.Fatalf("step %d: %d are said to wait, %v", i, got, known)
		}
		if b.Open() != step.open {
			t.Fatalf("step %d, %d waiting: open is %v", i, step.waiting, b.Open())
		}
		if s := b.State(); strings.Contains(s.Why, "down") != (step.sick != nil) || (s.State == sale.BreakerOpen) != step.open {
			t.Fatalf("step %d: %+v", i, s)
		}
		clock.advance(15 * time.Second)
	}
	if s := b.State(); s.Changes != 3 || s.State != sale.BreakerOpen || s.Name != sale.BreakerBacklog {
		t.Errorf("%+v", s)
	}
	if got := strings.Count(log.String(), "breaker=backlog"); got != 3 {
		t.Errorf("3 changes were logged %d times:\n%s", got, log.String())
	}
	if got := strings.Count(log.String(), "cannot be counted"); got != 2 {
		t.Errorf("failures more than a minute apart were logged %d times", got)
	}
	sick = context.DeadlineExceeded
	for range 120 { // four minutes
		b.Look(t.Context())
		clock.advance(2 * time.Second)
	}
	if got := strings.Count(log.String(), "cannot be counted"); got != 2+4 {
		t.Errorf("four minutes of failures were logged %d times", got-2)
	}
	sick = nil
	forced = sale.BreakerClosed
	if s := b.State(); b.Open() || !s.Forced || s.State != sale.BreakerClosed {
		t.Errorf("forced closed: %+v", s)
	}
	n, forced = 0, sale.BreakerOpen
	b.Look(t.Context())
	if !b.Open() {
		t.Error("forced open, and is not")
	}
	cfg.BacklogMaxEvents = 5_000_001
	if cfg.Validate() == nil {
		t.Error("a backlog may be longer than can be counted")
	}
}

// machine is one that is as busy as a test says.
type machine struct {
	cpu    float64
	err    error
	forced string
	log    bytes.Buffer
}

func (m *machine) load(change func(*limiter.Config)) *limiter.Load {
	cfg := limiter.DefaultConfig()
	cfg.AdaptiveInFlight, cfg.MaxInFlight = 10, 50
	if change != nil {
		change(&cfg)
	}
	return limiter.NewLoad(cfg, limiter.LoadParts{
		CPU: func() (float64, error) { return m.cpu, m.err }, Forced: func(string) string { return m.forced },
		Now: time.Now, Log: slog.New(slog.NewTextHandler(&m.log, nil)),
	})
}

// refused is how many of a thousand purchases are.
func refused(l *limiter.Load) (n int) {
	for range 1000 {
		if l.Shed() {
			n++
		}
	}
	return n
}

func TestAdaptiveSteps(t *testing.T) {
	m := &machine{forced: sale.BreakerAuto}
	l := m.load(nil)
	for range 11 {
		l.Enter()
	}
	for i, step := range []struct {
		cpu  float64
		shed int
	}{
		{100, 0},
		{100, 0},
		{94, 0}, // not three in a row
		{95, 0},
		{95, 0},
		{95, 10},
		{99, 20},
		{100, 30},
		{100, 40},
		{50, 35},
		{100, 35},
		{100, 35},
		{100, 45},
		{100, 55},
		{100, 65},
		{100, 75},
		{100, 85},
		{100, 90},
		{100, 90},
		{94, 85},
		{0, 80},
	} {
		m.cpu = step.cpu
		if err := l.Sample(); err != nil {
			t.Fatal(err)
		}
		if l.ShedPercent() != step.shed || refused(l) != step.shed*10 {
			t.Fatalf("sample %d, %v %% busy: %d %% shed, want %d %%", i, step.cpu, l.ShedPercent(), step.shed)
		}
	}
	l.Leave() // 10 in hand: a busy machine alone refuses nobody
	m.cpu = 100
	for range 16 {
		if err := l.Sample(); err != nil {
			t.Fatal(err)
		}
	}
	if l.ShedPercent() != 0 || refused(l) != 0 {
		t.Errorf("%d %% shed with few requests in hand", l.ShedPercent())
	}
	if s := l.State(); s.State != sale.BreakerClosed || s.Changes != 2 {
		t.Errorf("%+v", s)
	}
	if got := strings.Count(m.log.String(), "breaker=adaptive"); got != 2 {
		t.Errorf("2 changes were logged %d times:\n%s", got, m.log.String())
	}
}

func TestAdaptiveForced(t *testing.T) {
	m := &machine{forced: sale.BreakerOpen}
	l := m.load(nil)
	if refused(l) != 1000 || l.State().State != sale.BreakerOpen {
		t.Errorf("forced open: %+v", l.State())
	}
	m.forced, m.cpu = sale.BreakerClosed, 100
	for range 20 {
		l.Enter()
		if err := l.Sample(); err != nil {
			t.Fatal(err)
		}
	}
	if refused(l) != 0 || l.State().State != sale.BreakerClosed {
		t.Errorf("forced closed: %+v", l.State())
	}
	m.forced = sale.BreakerAuto
	if refused(l) == 0 {
		t.Error("what it saw meanwhile is forgotten")
	}
}

func TestInFlightIsCapped(t *testing.T) {
	m := &machine{}
	l := m.load(nil)
	for i := range 60 {
		if got := l.Enter(); got != (i < 50) {
			t.Fatalf("request %d: admitted is %v", i, got)
		}
	}
	if l.InFlight() != 50 {
		t.Fatalf("%d in hand", l.InFlight())
	}
	l.Leave()
	if !l.Enter() || l.Enter() {
		t.Error("one left, and not exactly one may enter")
	}
	if n := testing.AllocsPerRun(1000, func() { l.Enter(); l.Shed(); l.Leave() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
