package limiter_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alibaba/sentinel-golang/util"

	"stockade/biz/sale"
	"stockade/limiter"
)

// sentinelClock moves the time of every breaker of the process by hand. Tests that use it run one after the other.
func sentinelClock(t *testing.T) func(time.Duration) {
	t.Helper()
	c := &standingClock{now: time.Unix(1_700_000_000, 0)}
	util.SetClock(c)
	t.Cleanup(func() { util.SetClock(util.NewRealClock()) })
	return c.advance
}

type standingClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *standingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
func (c *standingClock) Sleep(time.Duration)       {}
func (c *standingClock) CurrentTimeMillis() uint64 { return uint64(c.Now().UnixMilli()) }
func (c *standingClock) CurrentTimeNano() uint64   { return uint64(c.Now().UnixNano()) }

func (c *standingClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ward is a set of breakers under test: what an operator forces, and what was logged.
type ward struct {
	*limiter.Breakers
	mu     sync.Mutex
	forces map[string]string
	log    bytes.Buffer
}

func (w *ward) force(name, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forces[name] = value
}

func (w *ward) forced(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forces[name]
}

func newWard(t *testing.T, change func(*limiter.Config)) *ward {
	t.Helper()
	cfg := limiter.DefaultConfig()
	cfg.Lanes = limiter.Rule{SlowMs: 50, SlowPercent: 30, ErrorPercent: 50, MinCalls: 10, WindowMs: 2000, OpenMs: 10_000}
	if change != nil {
		change(&cfg)
	}
	w := &ward{forces: map[string]string{}}
	b, err := limiter.NewBreakers(cfg, limiter.BreakerParts{Forced: w.forced, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.Breakers = b
	t.Cleanup(b.Close)
	return w
}

var errSick = errors.New("sick")

// call makes one call that takes so long and ends so; false: it was refused.
func call(t *testing.T, b *limiter.Breaker, took time.Duration, result error) bool {
	t.Helper()
	done, err := b.Allow()
	if err != nil {
		if !errors.Is(err, sale.ErrBreakerOpen) {
			t.Fatalf("refused with %v", err)
		}
		return false
	}
	done(result, took)
	return true
}

func expectState(t *testing.T, b *limiter.Breaker, state string, changes uint64) {
	t.Helper()
	if s := b.State(); s.State != state || s.Changes != changes {
		t.Fatalf("the breaker is %+v, want %s after %d changes", s, state, changes)
	}
}

func open(t *testing.T, b *limiter.Breaker) {
	t.Helper()
	for range 10 {
		if !call(t, b, 80*time.Millisecond, nil) {
			t.Fatal("refused before there were enough calls")
		}
	}
}

func TestBreakerOpensProbesAndCloses(t *testing.T) {
	for name, sick := range map[string]struct {
		took time.Duration
		err  error
	}{"slow": {80 * time.Millisecond, nil}, "failing": {time.Millisecond, errSick}} {
		t.Run(name, func(t *testing.T) {
			advance := sentinelClock(t)
			w := newWard(t, nil)
			lane := w.Lane("10.0.0.1:6379")
			for range 9 {
				call(t, lane, sick.took, sick.err)
			}
			expectState(t, lane, sale.BreakerClosed, 0) // not enough calls to tell
			call(t, lane, sick.took, sick.err)
			expectState(t, lane, sale.BreakerOpen, 1)
			if !lane.Open() || call(t, lane, 0, nil) {
				t.Fatal("an open breaker lets calls through")
			}
			advance(9999 * time.Millisecond)
			if !lane.Open() || call(t, lane, 0, nil) {
				t.Fatal("it was open for less than its time")
			}
			advance(time.Millisecond)
			if lane.Open() {
				t.Fatal("its time is over, and it says that calls are refused")
			}
			done, err := lane.Allow() // the probe
			if err != nil {
				t.Fatal("the probe was refused")
			}
			expectState(t, lane, limiter.StateHalfOpen, 2)
			for range 100 {
				if !lane.Open() || call(t, lane, 0, nil) {
					t.Fatal("more than one call went through while half-open")
				}
			}
			done(sick.err, sick.took)
			expectState(t, lane, sale.BreakerOpen, 3)
			advance(10 * time.Second)
			if !call(t, lane, time.Millisecond, nil) {
				t.Fatal("the second probe was refused")
			}
			expectState(t, lane, sale.BreakerClosed, 5)
			if !call(t, lane, sick.took, sick.err) {
				t.Fatal("the sickness before it closed counts again")
			}
			expectState(t, lane, sale.BreakerClosed, 5)
			if got := lane.State().Refused; got != 102 {
				t.Errorf("%d refusals counted, want 102", got)
			}
			if got := strings.Count(w.log.String(), "lane.10.0.0.1:6379"); got != 5 {
				t.Errorf("5 changes were logged %d times:\n%s", got, w.log.String())
			}
		})
	}
}

func TestBreakerBearsWhatIsUsual(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	for i := range 10_000 { // 2 of 10 slow, 1 of 10 failing
		var err error
		took := time.Millisecond
		switch i % 10 {
		case 3, 7:
			took = 200 * time.Millisecond
		case 5:
			err = errSick
		}
		if !call(t, lane, took, err) {
			t.Fatalf("call %d refused: %+v", i, lane.State())
		}
		advance(5 * time.Millisecond)
	}
}

// Refused calls are no errors: if they were, the breaker would hold itself open.
func TestRefusalsDoNotCount(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	open(t, lane)
	for range 10_000 {
		call(t, lane, 0, nil)
		advance(500 * time.Microsecond)
	}
	advance(10 * time.Second)
	for i := range 20 {
		if !call(t, lane, time.Millisecond, nil) {
			t.Fatalf("call %d after the time was refused: %+v", i, lane.State())
		}
	}
	expectState(t, lane, sale.BreakerClosed, 3)
}

func TestLanesAreApart(t *testing.T) {
	sentinelClock(t)
	w, other := newWard(t, nil), newWard(t, nil)
	open(t, w.Lane("a:1"))
	for name, b := range map[string]*limiter.Breaker{
		"another lane": w.Lane("b:1"), "outbox": w.Outbox(), "publish": w.Publish(), "another node's": other.Lane("a:1"),
	} {
		if b.Open() || !call(t, b, 0, nil) {
			t.Errorf("%s is shut, too", name)
		}
	}
	if again := w.Lane("a:1"); !again.Open() {
		t.Error("a lane that is opened anew gets a fresh breaker")
	}
	var names []string
	for _, s := range w.List() {
		names = append(names, s.Name+" "+s.State)
	}
	if got, want := strings.Join(names, ", "), "lane.a:1 open, lane.b:1 closed, outbox closed, publish closed"; got != want {
		t.Errorf("listed: %s, want %s", got, want)
	}
}

// Two rules guard a lane. While one is half-open the other may be open, and must not lose the first one's probe.
func TestBothRulesOpen(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	late, err := lane.Allow() // ends after the lane has opened
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		call(t, lane, 80*time.Millisecond, errSick)
	}
	late(errSick, 80*time.Millisecond) // opens the slow rule and the failing one
	expectState(t, lane, sale.BreakerOpen, 1)
	for range 5 {
		advance(10 * time.Second)
		call(t, lane, 80*time.Millisecond, errSick)
		if s := lane.State(); s.State != sale.BreakerOpen {
			t.Fatalf("%+v", s)
		}
	}
	advance(10 * time.Second)
	if !call(t, lane, time.Millisecond, nil) {
		t.Fatal("no probe")
	}
	expectState(t, lane, sale.BreakerClosed, lane.State().Changes)
	if !call(t, lane, time.Millisecond, nil) {
		t.Fatal("closed, and refuses")
	}
}

// The rule whose time is over asks for a probe, and the other one refuses it: that is no new reason to stay open.
func TestProbeThatTheOtherRuleRefuses(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	var late []func(error, time.Duration)
	for range 10 {
		done, err := lane.Allow()
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, done)
	}
	open(t, lane) // for being slow, for 10 s
	advance(5 * time.Second)
	for _, done := range late { // for failing, from now on for 10 s
		done(errSick, time.Millisecond)
	}
	advance(5 * time.Second)
	if call(t, lane, 0, nil) || !lane.Open() {
		t.Fatal("the rule against failures lets a call through")
	}
	advance(5 * time.Second)
	if lane.Open() {
		t.Error("both rules' times are over, and it says that calls are refused")
	}
	if !call(t, lane, time.Millisecond, nil) {
		t.Fatal("no probe")
	}
	expectState(t, lane, sale.BreakerClosed, 3)
}

// What a call is said to have taken counts, also if that is next to nothing.
func TestTimesAreTheCallers(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	for i := range 20 {
		done, err := lane.Allow()
		if err != nil {
			t.Fatalf("call %d is refused: %+v", i, lane.State())
		}
		advance(100 * time.Millisecond)
		done(nil, 0)
	}
}

func TestForcedBreakers(t *testing.T) {
	advance := sentinelClock(t)
	w := newWard(t, nil)
	lane := w.Lane("a:1")
	w.force("lane.a:1", sale.BreakerOpen)
	if !lane.Open() || call(t, lane, 0, nil) {
		t.Fatal("forced open, and lets a call through")
	}
	if s := lane.State(); s.State != sale.BreakerOpen || !s.Forced || s.Changes != 0 {
		t.Errorf("forced open: %+v", s)
	}
	w.force("lane.a:1", sale.BreakerClosed)
	for range 100 {
		if !call(t, lane, time.Second, errSick) {
			t.Fatal("forced closed, and refuses")
		}
	}
	w.force("lane.a:1", sale.BreakerAuto)
	expectState(t, lane, sale.BreakerClosed, 0) // what was forced through says nothing
	open(t, lane)
	w.force("lane.a:1", sale.BreakerClosed)
	if lane.Open() || !call(t, lane, 0, nil) {
		t.Fatal("forced closed, and refuses")
	}
	w.force("lane.a:1", sale.BreakerAuto)
	expectState(t, lane, sale.BreakerOpen, 1)
	advance(10 * time.Second)
	done, err := lane.Allow()
	if err != nil {
		t.Fatal(err)
	}
	w.force("lane.a:1", sale.BreakerOpen) // while a probe is under way
	done(nil, time.Millisecond)
	w.force("lane.a:1", sale.BreakerAuto)
	expectState(t, lane, sale.BreakerClosed, 3)
}

func TestRulesAreReloaded(t *testing.T) {
	advance := sentinelClock(t)
	path := filepath.Join(t.TempDir(), "breakers.yaml")
	w := newWard(t, func(c *limiter.Config) { c.BreakersFile = path })
	version := time.Unix(1_700_000_000, 0)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		version = version.Add(time.Second)
		if err := os.Chtimes(path, version, version); err != nil {
			t.Fatal(err)
		}
		w.Reload()
	}
	bears := func(b *limiter.Breaker, calls int, took time.Duration) (refused bool) {
		for range calls {
			refused = refused || !call(t, b, took, nil)
		}
		return refused || b.Open()
	}
	a, b := w.Lane("a:1"), w.Lane("b:1")
	write("lanes: {slowMs: 100}\nlane.b:1: {slowMs: 10, minCalls: 3}\n")
	if bears(a, 20, 80*time.Millisecond) || bears(w.Lane("c:1"), 20, 80*time.Millisecond) {
		t.Fatal("80 ms open a lane that bears 100")
	}
	if !bears(b, 3, 20*time.Millisecond) {
		t.Fatal("20 ms do not open a lane that bears 10")
	}
	write("lanes: {slowMs: 100}\nlane.b:1: {slowMs: 10, minCalls: 3}\noutbox: {slowMs: 9}\n")
	expectState(t, b, sale.BreakerOpen, 1) // its rule is what it was
	for _, broken := range []string{
		"lanes: {slowMs: 100", "lanes: {slow: 1}", "lane: {slowMs: 1}", "lanes: {slowMs: 0}", "lanes: {slowPercent: 101}",
		"lanes: {windowMs: 101}", "lanes: fast", "lanes: {slowMs: 1}\n---\nlanes: {slowMs: 2}", "lanes: {slowMs: 1.5}",
	} {
		write(broken)
		if !strings.Contains(w.log.String(), "limiter.breakersFile is ignored") {
			t.Errorf("%q is not refused", broken)
		}
		w.log.Reset()
		w.Reload()
		if w.log.Len() > 0 {
			t.Errorf("%q is logged again: %s", broken, w.log.String())
		}
		advance(2 * time.Second)
		if bears(a, 20, 80*time.Millisecond) {
			t.Fatalf("%q changed the rules", broken)
		}
	}
	write("lane.b:1: {slowMs: 10, minCalls: 3, openMs: 500}\n")
	if b.Open() {
		t.Error("a new rule begins closed")
	}
	advance(2 * time.Second)
	if !bears(a, 10, 80*time.Millisecond) {
		t.Error("what is no longer in the file still holds")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.Reload()
	advance(2 * time.Second)
	if bears(b, 20, 20*time.Millisecond) {
		t.Error("the rules of a file that is gone still hold")
	}
}

// A probe that is under way while the rules change must not leave the breaker half-open.
func TestReloadDuringProbe(t *testing.T) {
	advance := sentinelClock(t)
	path := filepath.Join(t.TempDir(), "breakers.yaml")
	w := newWard(t, func(c *limiter.Config) { c.BreakersFile = path })
	lane := w.Lane("a:1")
	open(t, lane)
	advance(10 * time.Second)
	done, err := lane.Allow()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("lanes: {slowMs: 60}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Reload()
	done(nil, time.Second)
	for i := range 5 {
		if !call(t, lane, time.Millisecond, nil) {
			t.Fatalf("call %d refused: %+v", i, lane.State())
		}
	}
	expectState(t, lane, sale.BreakerClosed, 3)
}

func TestManyLanes(t *testing.T) {
	sentinelClock(t)
	w := newWard(t, nil)
	for i := range 2000 {
		if !call(t, w.Lane("10.0.0.1:"+strings.Repeat("1", 1+i%7)+string(rune('a'+i%26))+time.Duration(i).String()), 0, nil) {
			t.Fatal("refused")
		}
	}
	if n := len(w.List()); n > 512 {
		t.Errorf("%d breakers are kept", n)
	}
	if w.Outbox().State().Name != sale.BreakerOutbox {
		t.Error("the outbox' breaker is gone")
	}
}

func TestBreakersInParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "breakers.yaml")
	w := newWard(t, func(c *limiter.Config) {
		c.BreakersFile = path
		c.Lanes.OpenMs, c.Lanes.WindowMs = 10, 100
	})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			lane := w.Lane("a:1")
			for i := range 2000 {
				var err error
				if i/100%2 == 0 {
					err = errSick
				}
				call(t, lane, time.Duration(i%90)*time.Millisecond, err)
				if g == 0 && i%200 == 0 {
					if err := os.WriteFile(path, []byte("lanes: {slowMs: "+time.Duration(i + 1).String()[:1]+"0}"), 0o600); err != nil {
						t.Error(err)
					}
					w.Reload()
				}
				w.List()
			}
		})
	}
	all.Wait()
	lane := w.Lane("a:1")
	deadline := time.Now().Add(10 * time.Second)
	for good := 0; good < 20; {
		if call(t, lane, 0, nil) {
			good++
		} else if time.Now().After(deadline) {
			t.Fatalf("the breaker never closes again: %+v", lane.State())
		}
	}
}
