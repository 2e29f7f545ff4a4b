package limiter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/limiter"
)

// What counts is what the file says: its time and size may be those of a version that could not be read.
func TestRulesFileIsComparedByContent(t *testing.T) {
	advance := sentinelClock(t)
	path := filepath.Join(t.TempDir(), "breakers.yaml")
	w := newWard(t, func(c *limiter.Config) { c.BreakersFile = path })
	version := time.Unix(1_700_000_000, 0)
	reload := func(said string, times int) {
		t.Helper()
		if err := os.Chtimes(path, version, version); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.Reload()
		}
		if got := strings.Count(w.log.String(), said); got != times {
			t.Errorf("%q was logged %d times, want %d:\n%s", said, got, times, w.log.String())
		}
		w.log.Reset()
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bears := func(took time.Duration) bool {
		advance(2 * time.Second) // what was before is out of the window
		for range 10 {
			if !call(t, w.Lane("a:1"), took, nil) {
				return false
			}
		}
		return !w.Lane("a:1").Open()
	}
	write("lanes: {slowMs: 90}\n")
	reload("breakersFile read", 1)
	if !bears(80 * time.Millisecond) {
		t.Error("the first version does not hold")
	}
	write("lanes: {slowMs: 20}\n")
	reload("breakersFile read", 1)
	if bears(30 * time.Millisecond) {
		t.Error("a version of the same time and size is not read")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // nobody can read it, whatever the permissions are
		t.Fatal(err)
	}
	reload("breakersFile is ignored", 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write("lanes: {slowMs: 20}\n")
	reload("breakersFile read", 1)
	write("lanes: {slowMs: 90}" + strings.Repeat(" ", 64<<10))
	reload("larger than", 1)
	write("lanes: {slowMs: 90}\n")
	reload("breakersFile read", 1)
	if !bears(80 * time.Millisecond) {
		t.Error("what can be read again is not read")
	}
}
