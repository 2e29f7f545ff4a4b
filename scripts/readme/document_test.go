//go:build unix

// Package readme_test does what README.md tells a newcomer to do, and compares what happens with what it says.
package readme_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// block is one fenced part of the page.
type block struct {
	section string // the heading above it
	lang    string
	line    int // of its fence
	text    string
}

// command is one line that a reader types, with what the page shows as its answer, if anything.
type command struct {
	section string
	line    int
	words   []string
	answer  string
}

func (c command) String() string {
	return fmt.Sprintf("README.md:%d: %s", c.line, strings.Join(c.words, " "))
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func blocks(t *testing.T) []block {
	t.Helper()
	var all []block
	var section string
	var open *block
	for i, line := range strings.Split(page(t), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{section: section, lang: fence, line: i + 1}
		case isFence:
			all, open = append(all, *open), nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
		}
	}
	if open != nil {
		t.Fatalf("README.md:%d: the block is not closed", open.line)
	}
	return all
}

// commands lists what the ```sh blocks hold. A block of another kind right behind one, in the same section, shows the
// answer of its last command.
func commands(t *testing.T) []command {
	t.Helper()
	var all []command
	answered := "" // the section whose last command still waits for its answer
	for _, b := range blocks(t) {
		if b.lang != "sh" {
			if answered == b.section && len(all) > 0 {
				all[len(all)-1].answer = b.text
			}
			answered = ""
			continue
		}
		line, typed := b.line, ""
		for text := range strings.Lines(b.text) {
			line++
			var more bool
			text, more = strings.CutSuffix(strings.TrimSuffix(text, "\n"), "\\")
			if typed += text; more {
				continue
			}
			words, err := split(typed)
			if err != nil || len(words) == 0 {
				t.Fatalf("README.md:%d: %q is no command: %v", line, typed, err)
			}
			all, typed = append(all, command{section: b.section, line: line, words: words}), ""
		}
		answered = b.section
	}
	if len(all) == 0 {
		t.Fatal("no commands found")
	}
	return all
}

// split takes a line apart as a shell does: words and quotes. What else a shell knows does not belong on a first page.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			end()
		case strings.ContainsRune("|&;<>()`*?#~!\\", r):
			return nil, fmt.Errorf("%q is more shell than this test understands", r)
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	end()
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed")
	}
	return words, nil
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		`make  run`:                          {"make", "run"},
		`curl -H 'A: b "c"' -d '{"n":1}' ''`: {"curl", "-H", `A: b "c"`, "-d", `{"n":1}`, ""},
		`export P="$PWD/x y":z`:              {"export", "P=$PWD/x y:z"},
		``:                                   nil,
		`a | b`:                              nil,
		`a 'b`:                               nil,
		`a \ b`:                              nil,
	} {
		if got, err := split(line); !slices.Equal(got, want) || (err != nil) != (want == nil && line != "") {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
}
