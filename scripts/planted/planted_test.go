// Package planted proves that the tests notice: it builds each bug of a list into a test binary, by an overlay that the
// sources never see, and demands that the tests of that place fail.
package planted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	root     = "../.."
	minBugs  = 16
	bugBound = 3 * time.Minute // building and testing with one bug
)

// bug is one change that makes the product wrong, and the tests that must see it.
type bug struct {
	name  string
	file  string // from the root of the repository
	edits []edit
	pkg   string
	tests string   // go test -run
	flags []string // more of go test
}

// edit replaces a text that occurs once in the file.
type edit struct{ old, new string }

func TestEveryPlantedBugIsCaught(t *testing.T) {
	if len(bugs) < minBugs {
		t.Errorf("%d bugs are planted, at least %d are wanted", len(bugs), minBugs)
	}
	caught := 0
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			if b.isCaught(t) {
				caught++
			}
		})
	}
	t.Logf("planted bugs caught: %d of %d", caught, len(bugs))
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: `)

// isCaught tells whether a test failed. A bug that does not compile, or stops the tests in another way, proves nothing.
func (b bug) isCaught(t *testing.T) bool {
	ctx, cancel := context.WithTimeout(t.Context(), bugBound)
	defer cancel()
	args := []string{"test", "-count=1", "-failfast", "-overlay", b.overlay(t), "-run", b.tests, b.pkg}
	cmd := exec.CommandContext(ctx, "go", append(args, b.flags...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		t.Errorf("nothing failed:\n%s", out)
	case !errors.As(err, &exit) || ctx.Err() != nil:
		t.Errorf("the tests did not end: %v\n%s", err, out)
	case !failedTest.Match(out):
		t.Errorf("no test failed, something else did:\n%s", out)
	default:
		t.Logf("caught: %s", verdict(out))
		return true
	}
	return false
}

var complaint = regexp.MustCompile(`(?m)^\s+\S+_?\w*\.go:\d+: .*$`)

// verdict is the first thing that a test said.
func verdict(out []byte) string {
	said := complaint.FindAll(out, 2)
	return strings.TrimSpace(string(bytes.Join(said, []byte(" "))))
}

// overlay writes the changed file and what tells the go command to take it instead.
func (b bug) overlay(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	planted := string(text)
	for _, e := range b.edits {
		if n := strings.Count(planted, e.old); n != 1 {
			t.Fatalf("%s has this text %d times, the bug needs it once:\n%s", b.file, n, e.old)
		}
		planted = strings.Replace(planted, e.old, e.new, 1)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(b.file))
	if err := os.WriteFile(changed, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
