package conf_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/conf"
)

// runbook is where the pages are; its index and the page of the backup belong to nothing else.
const (
	runbook = "runbook"
	index   = "README.md"
	restore = "restore.md"
)

// headings are those of every page, in their order.
var headings = []string{"What you see", "What it means", "What to do", "How to know it worked", "How to go back"}

// wantedPages lists the pages that there must be, and what each is for.
func wantedPages() map[string]string {
	pages := map[string]string{index: "the index", restore: "the backup"}
	for _, kind := range sale.ToggleKinds() {
		pages[kind.Page()] = "toggle " + kind.Name
	}
	for _, alert := range conf.Alerts() {
		pages[alert.Page()] = "alert " + alert.Name
	}
	for _, code := range handler.Codes() {
		pages["code-"+code.Name+".md"] = "code " + code.Name
	}
	for check, page := range sale.CheckPages {
		pages[page] = "check " + string(check)
	}
	return pages
}

func TestEveryToggleAlertCheckAndCodeHasItsPage(t *testing.T) {
	found, err := os.ReadDir(runbook)
	if err != nil {
		t.Fatal(err)
	}
	wanted := wantedPages()
	for _, f := range found {
		if wanted[f.Name()] == "" {
			t.Errorf("%s belongs to no toggle, alert, check or code", f.Name())
		}
		delete(wanted, f.Name())
	}
	for page, what := range wanted {
		t.Errorf("%s has no page %s", what, page)
	}
}

func TestTheIndexNamesEveryPage(t *testing.T) {
	text := read(t, index)
	for page := range wantedPages() {
		if page != index && !strings.Contains(text, "]("+page+")") {
			t.Errorf("%s does not link to %s", index, page)
		}
	}
}

func TestEveryPageHasItsHeadings(t *testing.T) {
	for _, page := range pages(t) {
		text := read(t, page)
		var found []string
		for _, part := range strings.Split(text, "\n## ")[1:] {
			heading, body, _ := strings.Cut(part, "\n")
			found = append(found, heading)
			if strings.TrimSpace(body) == "" {
				t.Errorf("%s: nothing under %q", page, heading)
			}
		}
		if !slices.Equal(found, headings) {
			t.Errorf("%s has the headings %q, want %q", page, found, headings)
		}
		if !strings.HasPrefix(text, "# ") || strings.Count(text, "```")%2 != 0 {
			t.Errorf("%s has no title, or a fence that does not end", page)
		}
	}
}

// A page that has something done says how to know that it worked: a command, and what it prints.
func TestWhatIsDoneCanBeChecked(t *testing.T) {
	for _, page := range pages(t) {
		parts := strings.Split(read(t, page), "\n## ")
		if len(parts) != len(headings)+1 {
			continue // told above
		}
		do, know := parts[3], parts[4]
		acts := strings.Contains(do, "\n```sh\n")
		if checks := strings.Contains(know, "\n```sh\n"); checks != acts {
			t.Errorf("%s: has commands to do %v, and to check %v", page, acts, checks)
		}
		if told := strings.Contains(know, "\n```text\n"); told != acts {
			t.Errorf("%s: has commands %v, and says what is printed %v", page, acts, told)
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)]+)\)`)
	variable = regexp.MustCompile(`\$\{?([A-Z][A-Z_]+)`)
)

func TestLinksAndVariablesAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(read(t, index), -1) {
		for _, name := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(row, -1) {
			known[name[1]] = true
		}
	}
	used := map[string]bool{}
	for _, page := range append(pages(t), index) {
		text := read(t, page)
		for _, to := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(runbook, to[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, to[1], err)
			}
		}
		for _, name := range variable.FindAllStringSubmatch(text, -1) {
			used[name[1]] = true
			if !known[name[1]] {
				t.Errorf("%s uses $%s, which the index does not explain", page, name[1])
			}
		}
	}
	for name := range maps.Keys(known) {
		if !used[name] && !strings.HasPrefix(name, "STOCKADE_") && name != "MYSQL_PWD" {
			t.Errorf("the index explains $%s, which no page uses", name)
		}
	}
}

// pages lists all but the index.
func pages(t *testing.T) []string {
	t.Helper()
	names := slices.Collect(maps.Keys(wantedPages()))
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == index })
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(runbook, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
