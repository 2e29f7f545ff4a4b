package main

import (
	"fmt"
	"io"
	"strings"
)

// event is one line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// testID names a test of a package; an empty test stands for the package.
type testID struct{ pkg, test string }

// summary gathers the events of one run and prints results as they come.
type summary struct {
	out     io.Writer
	output  map[testID][]string
	results map[testID]string
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:     out,
		output:  map[testID][]string{},
		results: map[testID]string{},
	}
}

func (s *summary) add(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "run":
		// A test that never reports again (panic, timeout) stays "run".
		s.results[id] = e.Action
	case "output":
		s.output[id] = append(s.output[id], e.Output)
	case "build-output":
		s.print([]string{e.Output})
	case "pass", "fail", "skip":
		s.results[id] = e.Action
		s.finish(id, e.Action)
	}
}

// finish prints a result and lets go of its output.
func (s *summary) finish(id testID, action string) {
	lines := s.output[id]
	delete(s.output, id)
	switch {
	case action == "fail" && id.test == "":
		s.finishUnended(id.pkg)
		s.print(lines)
	case action == "fail", action == "skip" && id.test != "":
		s.print(lines)
	case id.test == "":
		for _, line := range lines {
			if strings.HasPrefix(line, "ok ") {
				s.print([]string{line})
			}
		}
	}
}

// finishUnended fails the tests that were still running when their package
// failed: the output of a panic or a timeout belongs to one of them.
func (s *summary) finishUnended(pkg string) {
	for id, result := range s.results {
		if id.pkg == pkg && id.test != "" && result == "run" {
			s.results[id] = "fail"
			s.print(s.output[id])
			delete(s.output, id)
		}
	}
}

func (s *summary) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(s.out, line)
	}
}

// totals counts the tests of a run.
type totals struct{ passed, failed, skipped int }

func (t totals) String() string {
	text := fmt.Sprintf("%d passed, %d failed", t.passed, t.failed)
	if t.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", t.skipped)
	}
	return text
}

// count counts each test once: one with subtests counts by its subtests, and a
// package counts only when it failed without a failed test (it did not build,
// or its TestMain ended it).
func (s *summary) count() totals {
	inner := s.failuresBelow()
	parents := s.parents()
	var t totals
	for id, result := range s.results {
		switch {
		case result == "fail" || result == "run":
			if !inner[id] {
				t.failed++
			}
		case id.test == "" || parents[id]:
		case result == "pass":
			t.passed++
		case result == "skip":
			t.skipped++
		}
	}
	return t
}

// parents marks every test that has subtests.
func (s *summary) parents() map[testID]bool {
	marked := map[testID]bool{}
	for id := range s.results {
		if up, ok := id.parent(); ok {
			marked[up] = true
		}
	}
	return marked
}

// failuresBelow marks every test and package with a failed test inside.
func (s *summary) failuresBelow() map[testID]bool {
	marked := map[testID]bool{}
	for id, result := range s.results {
		if result != "fail" && result != "run" {
			continue
		}
		for up, ok := id.parent(); ok; up, ok = up.parent() {
			marked[up] = true
		}
	}
	return marked
}

// parent returns the test around a subtest, or the package of a test.
func (id testID) parent() (testID, bool) {
	if id.test == "" {
		return testID{}, false
	}
	cut := max(strings.LastIndexByte(id.test, '/'), 0)
	return testID{id.pkg, id.test[:cut]}, true
}
