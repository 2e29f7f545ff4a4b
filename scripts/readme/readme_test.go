//go:build unix

package readme_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stockade/biz/sale"
)

// Who follows the commands of which section.
var (
	embeddedSections = []string{"Run", "Buy", "Purchase tokens", "Demo", "Test"}
	serverSections   = []string{"Real servers"}
)

// A newcomer runs, buys, tries the demo, stops with Ctrl-C and starts again.
func TestEmbedded(t *testing.T) {
	r := newReader(t)
	var start, order command
	for _, c := range commands(t) {
		if !slices.Contains(embeddedSections, c.section) {
			continue
		}
		r.follow(c)
		switch {
		case c.words[0] == "make" && c.words[1] == "run":
			start = c
		case strings.Contains(c.answer, `"CREATED"`):
			order = c
		}
	}
	if start.words == nil || order.words == nil {
		t.Fatal("the page does not run, or does not follow an order to CREATED")
	}
	r.running.interrupt(t)
	r.follow(start)
	r.follow(order) // it is still there
	r.running.interrupt(t)
}

func TestEveryCommandIsCovered(t *testing.T) {
	all := slices.Concat(embeddedSections, serverSections)
	for _, c := range commands(t) {
		if ruleFor(c) == nil {
			t.Errorf("%v: no rule covers it", c)
		}
		if !slices.Contains(all, c.section) {
			t.Errorf("%v: no test follows the section %q", c, c.section)
		}
	}
	for _, b := range blocks(t) {
		if !slices.Contains([]string{"sh", "json", "text", "yaml"}, b.lang) {
			t.Errorf("README.md:%d: a block is sh, the answer to one (json or text), or yaml of a file", b.line)
		}
	}
	if c := (command{words: []string{"make", "coffee"}}); ruleFor(c) != nil {
		t.Errorf("%v is covered", c)
	}
}

// Commands that are only mentioned exist too.
func TestMentionedCommandsExist(t *testing.T) {
	r := newReader(t)
	found := 0
	for _, m := range regexp.MustCompile("`(make|stockade) ([^`]+)`").FindAllStringSubmatch(page(t), -1) {
		found++
		words := strings.Fields(m[2])
		if m[1] == "make" {
			if recipeOf(t, words[0]) == "" {
				t.Errorf("make %s: the Makefile has no such target", words[0])
			}
			continue
		}
		help := append([]string{"stockade"}, words...)
		if !slices.Contains(words, "--help") {
			help = append(help, "--help")
		}
		out, err := r.command(t.Context(), help...).CombinedOutput()
		plain := slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
		if err != nil || !strings.Contains(string(out), strings.TrimSpace("stockade "+strings.Join(plain, " "))) {
			t.Errorf("stockade %s: %v\n%s", m[2], err, out)
		}
	}
	if found < 10 {
		t.Errorf("only %d commands found", found)
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(page(t), -1)
	for _, l := range links {
		if _, err := os.Stat(filepath.Join(root, l[1])); err != nil {
			t.Errorf("link: %v", err)
		}
	}
	if len(links) == 0 {
		t.Error("no links found")
	}
}

// row finds the table row whose first cell is name.
func row(t *testing.T, text, name string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) > 2 && cells[0] == name {
			return cells
		}
	}
	t.Errorf("there is no row for %s", name)
	return make([]string, 3)
}

// The table of codes agrees with the service, and leaves no verdict out.
func TestResultCodes(t *testing.T) {
	r := newReader(t)
	out, err := r.tool(context.Background(), command{words: []string{"stockade", "errors", "-o", "json"}})
	if err != nil {
		t.Fatal(err)
	}
	var codes []struct {
		Code           string
		Status, Result *json.Number
	}
	if err := json.Unmarshal([]byte(out), &codes); err != nil {
		t.Fatal(err)
	}
	verdicts := 0
	for _, c := range codes {
		if c.Result == nil {
			continue
		}
		verdicts++
		if got := row(t, page(t), c.Code); got[1] != c.Result.String() || got[2] != c.Status.String() {
			t.Errorf("%s is %v on the page, want result %s and status %s", c.Code, got, *c.Result, *c.Status)
		}
	}
	if verdicts < 6 {
		t.Errorf("only %d verdicts found", verdicts)
	}
}

// The table of toggles has every one, with its values and whether it may be set for a single SKU.
func TestToggles(t *testing.T) {
	values := map[string]string{}
	for _, kind := range sale.ToggleKinds() {
		name, _, breaker := strings.Cut(kind.Name, ".")
		cell := "`" + name + "`"
		if breaker {
			cell = "`" + name + ".<name>`"
		}
		if kind.PerSKU {
			cell += " \\*"
		}
		allowed := "`" + strings.Join(kind.Values, "`, `") + "`"
		if kind.Values == nil {
			allowed = "`0` to `100`"
		}
		values[cell] = allowed
	}
	for cell, allowed := range values {
		if got := row(t, page(t), cell); got[1] != allowed {
			t.Errorf("%s has the values %s on the page, want %s", cell, got[1], allowed)
		}
	}
}

// The settings on the page are those of the reference, with their defaults.
func TestSettings(t *testing.T) {
	reference, err := os.ReadFile(filepath.Join(root, "conf", "REFERENCE.md"))
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile("(?m)^\\| (`[a-z]+\\.[A-Za-z]+`) \\|").FindAllStringSubmatch(page(t), -1)
	for _, k := range keys {
		want, got := row(t, string(reference), k[1]), row(t, page(t), k[1])
		if got[1] != want[2] {
			t.Errorf("%s has the default %s on the page, want %s", k[1], got[1], want[2])
		}
	}
	if len(keys) != 7 {
		t.Errorf("%d settings found, want the 7 that matter most", len(keys))
	}
}
