//go:build unix

package readme_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Addresses that the page uses; a test has others.
const (
	pagePublic = "127.0.0.1:8080"
	pageAdmin  = "127.0.0.1:8081"
)

// reader follows the page. What it starts listens on free ports and keeps its data in a temporary folder.
type reader struct {
	t             *testing.T
	env           []string
	values        map[string]string // what the test has in place of the page's own for exported variables
	public, admin string
	running       *process
}

func newReader(t *testing.T) *reader {
	r := &reader{t: t}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		// Neither settings of ours, nor those that make hands down when this runs under make test.
		if !strings.HasPrefix(name, "STOCKADE_") && !slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}, name) {
			r.env = append(r.env, v)
		}
	}
	r.set("STOCKADE_ROUTER_PUBLIC", "127.0.0.1:0")
	r.set("STOCKADE_ROUTER_ADMIN", "127.0.0.1:0")
	r.set("STOCKADE_STORE_PATH", filepath.Join(t.TempDir(), "stockade.db"))
	// A first build takes minutes; what follows has deadlines that a built program keeps.
	if out, err := r.command(t.Context(), "make", "build").CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	return r
}

func (r *reader) set(name, value string) { r.env = append(r.env, name+"="+value) }

// rule says how to follow the commands that begin with these words. It returns what the reader sees.
type rule struct {
	begins string
	follow func(*reader, context.Context, command) (string, error)
	loose  bool // the numbers on the page are examples
}

// rules cover every command of the page; the longest that fits counts.
var rules = []rule{
	{begins: "make run", follow: (*reader).makeRun},
	{begins: "make demo", follow: (*reader).demo, loose: true},
	{begins: "make build", follow: (*reader).tool},
	{begins: "make test", follow: (*reader).target},
	{begins: "make unit", follow: (*reader).target},
	{begins: "export", follow: (*reader).export},
	{begins: "stockade serve", follow: (*reader).serve},
	{begins: "stockade", follow: (*reader).tool},
	{begins: "stockade token create", follow: (*reader).createToken},
	{begins: ".bin/stockade", follow: (*reader).tool},
	{begins: "curl", follow: (*reader).curl},
}

func ruleFor(c command) *rule {
	var best *rule
	for i, r := range rules {
		n := len(strings.Fields(r.begins))
		if len(c.words) >= n && strings.Join(c.words[:n], " ") == r.begins && (best == nil || len(r.begins) > len(best.begins)) {
			best = &rules[i]
		}
	}
	return best
}

// follow does what a command says until the answer is the page's: orders take a moment, and a shop asks again.
func (r *reader) follow(c command) {
	r.t.Helper()
	rule := ruleFor(c)
	if rule == nil {
		r.t.Fatalf("%v: no rule covers it", c)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), startTimeout)
	defer cancel()
	repeats := c.words[0] == "curl" || slices.Contains(c.words, "list") || slices.Contains(c.words, "show")
	for deadline := time.Now().Add(answerTimeout); ; {
		got, err := rule.follow(r, ctx, c)
		differs := ""
		if err == nil && c.answer != "" {
			differs = difference(c.answer, got, rule.loose)
		}
		if err == nil && differs == "" {
			return
		}
		if !repeats || time.Now().After(deadline) {
			r.t.Fatalf("%v\n%v\n%s\n--- output:\n%s", c, err, differs, got)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * pollEvery): // five requests a second are a buyer's share
		}
	}
}

// command runs a program from the top of the repository, with the binary that make builds.
func (r *reader) command(ctx context.Context, words ...string) *exec.Cmd {
	if words[0] == "stockade" {
		words = append([]string{filepath.Join(".bin", "stockade")}, words[1:]...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = root, r.env
	if r.public != "" {
		cmd.Env = append(slices.Clone(r.env), "STOCKADE_PUBLIC_URL=http://"+r.public, "STOCKADE_ADMIN_URL=http://"+r.admin)
	}
	return cmd
}

func (r *reader) tool(ctx context.Context, c command) (string, error) {
	out, err := r.command(ctx, c.words...).CombinedOutput()
	return string(out), err
}

var adminToken = regexp.MustCompile(`token +(stk_\S+)`)

// createToken keeps the token for when the page exports it.
func (r *reader) createToken(ctx context.Context, c command) (string, error) {
	out, err := r.tool(ctx, c)
	if found := adminToken.FindStringSubmatch(out); found != nil {
		r.values["STOCKADE_ADMIN_TOKEN"] = found[1]
	}
	return out, err
}

// banner finds the addresses in what `make run` prints, which ends with a word about Ctrl-C.
var banner = regexp.MustCompile(`(?s)API +http://(\S+).*admin +http://(\S+).*Ctrl-C[^\n]*\n`)

func (r *reader) makeRun(_ context.Context, c command) (string, error) {
	p := begin(r.t, r.command(context.Background(), c.words...))
	found := p.await(r.t, banner.FindStringSubmatch)
	r.running, r.public, r.admin = p, found[1], found[2]
	if token := adminToken.FindStringSubmatch(found[0]); token != nil {
		r.set("STOCKADE_ADMIN_TOKEN", token[1]) // a reader's is where commands look; a test's data is elsewhere
	}
	return withoutLog(p.out.String()), nil
}

// withoutLog takes out what goes to standard error.
func withoutLog(text string) string {
	return regexp.MustCompile(`(?m)^(time=|go: |\{"time").*\n`).ReplaceAllString(text, "")
}

var serving = regexp.MustCompile(`"serving".*"public":"([^"]+)","admin":"([^"]+)"`)

func (r *reader) serve(_ context.Context, c command) (string, error) {
	p := begin(r.t, r.command(context.Background(), c.words...))
	found := p.await(r.t, serving.FindStringSubmatch)
	r.running, r.public, r.admin = p, found[1], found[2]
	return "", nil
}

// demo runs what the Makefile does, with fewer buyers.
func (r *reader) demo(ctx context.Context, c command) (string, error) {
	if recipe := recipeOf(r.t, "demo"); recipe != "@.bin/stockade demo" {
		return "", fmt.Errorf("make demo runs %q", recipe)
	}
	cmd := r.command(ctx, "stockade", "demo", "--buyers", "500", "--units", "50")
	out, err := cmd.Output()
	return string(out), err
}

// target looks for the target only: this test is what it runs.
func (r *reader) target(_ context.Context, c command) (string, error) {
	if recipeOf(r.t, c.words[1]) == "" || len(c.words) != 2 {
		return "", fmt.Errorf("the Makefile has no such target")
	}
	return "", nil
}

// recipeOf returns what the Makefile does for a target, or "".
func recipeOf(t *testing.T, target string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*\n\t(.*)`).FindStringSubmatch(string(text))
	if found == nil {
		return ""
	}
	return found[1]
}

func (r *reader) export(_ context.Context, c command) (string, error) {
	name, value, ok := strings.Cut(strings.Join(c.words[1:], " "), "=")
	mine, known := r.values[name]
	switch {
	case !ok:
		return "", fmt.Errorf("exports no value")
	case name == "PATH" && value != "$PWD/.bin:$PATH":
		return "", fmt.Errorf("the binary is in .bin")
	case name == "PATH": // command knows
	case !known:
		return "", fmt.Errorf("this test has no value for %s", name)
	default:
		r.set(name, mine)
	}
	return "", nil
}

// curl sends the request that curl would send: a machine with Go and make need not have it.
func (r *reader) curl(ctx context.Context, c command) (string, error) {
	method, url, body := http.MethodGet, "", ""
	header := http.Header{}
	for i := 1; i < len(c.words); i++ {
		word := c.words[i]
		takes := slices.Contains([]string{"-X", "-H", "-d"}, word)
		if takes && i+1 == len(c.words) {
			return "", fmt.Errorf("%s says nothing", word)
		}
		switch {
		case word == "-sS":
		case takes:
			i++
			name, value, _ := strings.Cut(c.words[i], ": ")
			switch word {
			case "-X":
				method = c.words[i]
			case "-d":
				body = c.words[i]
			default:
				header.Set(name, value)
			}
		case strings.HasPrefix(word, "http://") && url == "":
			url = strings.NewReplacer(pagePublic, r.public, pageAdmin, r.admin).Replace(word)
		default:
			return "", fmt.Errorf("%q is more curl than this test understands", word)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}
