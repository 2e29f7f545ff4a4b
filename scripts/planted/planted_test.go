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
	lua := buildLua(t)
	caught := 0
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			if b.isCaught(t, lua) {
				caught++
			}
		})
	}
	t.Logf("planted bugs caught: %d of %d", caught, len(bugs))
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: `)

// isCaught tells whether a test failed. A bug that does not compile, or stops the tests in another way, proves nothing.
func (b bug) isCaught(t *testing.T, lua luaBinary) bool {
	ctx, cancel := context.WithTimeout(t.Context(), bugBound)
	defer cancel()
	out, err := b.test(ctx, t, lua)
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

// test builds the bug into the tests of its package and runs them. Lua scripts need no building: one binary tests them all.
func (b bug) test(ctx context.Context, t *testing.T, lua luaBinary) (output []byte, err error) {
	if strings.HasPrefix(b.file, luaDir) {
		return lua.test(ctx, t, b)
	}
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-overlay", b.overlay(t), "-run", b.tests, b.pkg}
	return plainGo(ctx, append(args, b.flags...)...).CombinedOutput()
}

// plainGo is a go command that runs at the root, without the race detector.
func plainGo(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

var complaint = regexp.MustCompile(`(?m)^\s+\S+_?\w*\.go:\d+: .*$`)

// verdict is the first thing that a test said.
func verdict(out []byte) string {
	said := complaint.FindAll(out, 2)
	return strings.TrimSpace(string(bytes.Join(said, []byte(" "))))
}

// planted is the file with the bug in it.
func (b bug) planted(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, b.file))
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
	return planted
}

// overlay writes the changed file and what tells the go command to take it instead.
func (b bug) overlay(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(b.file))
	if err := os.WriteFile(changed, []byte(b.planted(t)), 0o600); err != nil {
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
