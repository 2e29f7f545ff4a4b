package tidy

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// House limits. They are a little above what we aim for (400 lines, 70 lines), so that nobody splits a file for a line.
const (
	maxFileLines     = 450
	maxTestFileLines = 700
	maxFuncLines     = 70
	maxTestFuncLines = 150 // tables of cases
)

func TestSizes(t *testing.T) {
	for _, f := range goFiles(t) {
		fileLimit, funcLimit := maxFileLines, maxFuncLines
		if testCode(f) {
			fileLimit, funcLimit = maxTestFileLines, maxTestFuncLines
		}
		if n := strings.Count(f.text, "\n"); n > fileLimit {
			t.Errorf("%s:%d: the file has %d lines, more than %d", f.path, fileLimit, n, fileLimit)
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
			if lines > funcLimit {
				t.Errorf("%s: %s has %d lines, more than %d", f.at(fn), fn.Name.Name, lines, funcLimit)
			}
		}
	}
}

// topLevel is everything that may lie at the top of the repository, hidden files aside.
var topLevel = []string{
	"LICENSE", "Makefile", "README.md", "biz", "cache", "cmd", "conf", "go.mod", "go.sum", "limiter", "mq", "scripts", "shard", "store",
}

func TestTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			found = append(found, e.Name())
		}
	}
	for _, name := range found {
		if !slices.Contains(topLevel, name) {
			t.Errorf("%s: does not belong at the top of the repository", name)
		}
	}
	for _, name := range topLevel {
		if !slices.Contains(found, name) {
			t.Errorf("%s: is missing", name)
		}
	}
}

// unfinished finds notes of work that was left.
var unfinished = regexp.MustCompile(`\b(` + `TODO|FIX` + `ME|XXX|HACK)\b`)

func TestNothingIsLeftUnfinished(t *testing.T) {
	walk(t, func(name string) {
		switch path.Ext(name) {
		case ".go", ".lua", ".sql", ".sh", ".yaml", ".md", "":
		default:
			return
		}
		if strings.HasPrefix(name, "scripts/tidy/") {
			return
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			if unfinished.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	})
}

// preamble is put before other scripts and is none itself.
const preamble = "common.lua"

// A script says what it is given and what it gives, beside the code.
func TestScriptsHaveHeaders(t *testing.T) {
	found := 0
	walk(t, func(name string) {
		if path.Ext(name) != ".lua" {
			return
		}
		found++
		header := ""
		for line := range strings.Lines(read(t, name)) {
			if !strings.HasPrefix(line, "--") {
				break
			}
			header += line
		}
		words := []string{"KEYS", "ARGV", "RETURNS"}
		if path.Base(name) == preamble {
			words = words[:1]
		}
		for _, word := range words {
			if !strings.Contains(header, word) {
				t.Errorf("%s:1: the header does not say %s", name, word)
			}
		}
	})
	if found == 0 {
		t.Error("no scripts found")
	}
}
