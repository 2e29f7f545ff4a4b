package limiter

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"stockade/biz/sale"
)

// A node that cannot read the processors' use sheds nothing meanwhile, and protects itself again afterwards.
func TestAdaptiveOutlivesAFailedSample(t *testing.T) {
	var log bytes.Buffer
	var sick error
	cfg := DefaultConfig()
	cfg.AdaptiveInFlight = 0
	l := NewLoad(cfg, LoadParts{
		CPU: func() (float64, error) { return 100, sick }, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	l.Enter()
	emfile, gone := &fs.PathError{Op: "open", Path: procStat, Err: syscall.EMFILE}, &fs.PathError{Op: "open", Path: procStat, Err: syscall.ENOENT}
	for i, step := range []struct {
		sick error
		shed int
		runs bool
	}{
		{nil, 0, true},
		{nil, 0, true},
		{nil, 10, true},
		{emfile, 0, true},
		{emfile, 0, true},
		{nil, 0, true}, // three in a row, from the start
		{nil, 0, true},
		{nil, 10, true},
		{emfile, 0, true},
		{gone, 0, false},
	} {
		sick = step.sick
		if runs := l.look(t.Context()); runs != step.runs || l.ShedPercent() != step.shed {
			t.Fatalf("look %d: %d %% shed, goes on: %v", i, l.ShedPercent(), runs)
		}
	}
	for said, want := range map[string]int{"protection is off": 2, "protection is back": 1} {
		if got := strings.Count(log.String(), said); got != want {
			t.Errorf("%q was logged %d times, want %d:\n%s", said, got, want, log.String())
		}
	}
}

// A breaker that stays forced is logged once, however many lanes there were.
func TestForcesAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	b, err := NewBreakers(DefaultConfig(), BreakerParts{
		Forced: func(string) string { return sale.BreakerOpen }, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	var forced map[string]bool
	for i := range 2 * maxBreakers {
		b.Lane(fmt.Sprintf("a:%d", i))
		if i%100 == 0 {
			forced = b.announceForces(forced)
		}
	}
	if got := strings.Count(log.String(), "breaker=outbox"); got != 1 {
		t.Errorf("the outbox, forced all the time, was logged %d times", got)
	}
	if len(forced) > maxBreakers {
		t.Errorf("%d breakers are remembered", len(forced))
	}
}

func TestCPU(t *testing.T) {
	const more = "\ncpu0 9 9 9 9 9 9 9 9 9 9\nintr 1\n"
	texts := []string{
		"cpu  100 20 50 700 100 10 15 5 40 0" + more, // guest time is a part of user time
		"cpu  104 21 52 770 120 11 16 6 90 0" + more, // 10 busy ticks, 70 idle ones, 20 that waited for disks
		"cpu  104 21 52 770 120 11 16 6 90 0" + more,
		"cpu  204 21 52 770 120 11 16 6 90 0" + more,
	}
	next := 0
	cpu := newCPU(func() ([]byte, error) { next++; return []byte(texts[next-1]), nil })
	for i, want := range []float64{20, 10, 0, 100} {
		if got, err := cpu(); err != nil || got != want {
			t.Errorf("look %d: %v %%, %v; want %v", i, got, err, want)
		}
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		if _, _, err := cpuTimes(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
	text, err := os.ReadFile(procStat)
	if err != nil {
		t.Fatal(err)
	}
	if busy, all, err := cpuTimes(string(text)); err != nil || busy == 0 || busy >= all {
		t.Errorf("this machine: %d of %d ticks, %v", busy, all, err)
	}
}
