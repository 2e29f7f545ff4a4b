//go:build services

package runbook_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagesDir is where the pages are, from here.
const pagesDir = "../../../conf/runbook"

// page is one procedure of the runbook.
type page struct {
	name  string
	drill string   // the preparation that it asks for; "" for none
	do    string   // commands of "What to do"
	know  string   // commands of "How to know it worked"
	says  []string // what those print, a part a line
	back  string   // commands of "How to go back"
}

var (
	drillMark = regexp.MustCompile(`(?m)^<!-- drill: (\S+) -->$`)
	fence     = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")
)

// readPages reads every page that names commands.
func readPages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pagesDir, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in %s: %v", pagesDir, err)
	}
	var all []page
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if p := readPage(strings.TrimSuffix(filepath.Base(file), ".md"), string(text)); p.do != "" {
			all = append(all, p)
		}
	}
	return all
}

// readPage reads one page. Its headings are held to their form by the tests beside the pages.
func readPage(name, text string) page {
	p := page{name: name}
	if m := drillMark.FindStringSubmatch(text); m != nil {
		p.drill = m[1]
	}
	for _, part := range strings.Split(text, "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		commands, printed := fences(body)
		switch heading {
		case "What to do":
			p.do = commands
		case "How to know it worked":
			p.know, p.says = commands, printed
		case "How to go back":
			p.back = commands
		}
	}
	return p
}

// fences joins the commands of a section, and lists the lines that they are said to print.
func fences(body string) (commands string, printed []string) {
	for _, m := range fence.FindAllStringSubmatch(body, -1) {
		if m[1] == "sh" {
			commands += m[2]
		} else {
			printed = append(printed, strings.Split(strings.TrimSpace(m[2]), "\n")...)
		}
	}
	return commands, printed
}

// missing lists what should have been printed and was not, with variables put in. Runs of spaces are one.
func (p page) missing(printed string, variables map[string]string) []string {
	printed = strings.Join(strings.Fields(printed), " ")
	return slices.DeleteFunc(slices.Clone(p.says), func(line string) bool {
		want := os.Expand(line, func(name string) string { return variables[name] })
		return strings.Contains(printed, strings.Join(strings.Fields(want), " "))
	})
}
