package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stockade/biz/auth"
)

const devTimeout = 30 * time.Second // of a start, and of a stop

// console is a standard output that a test reads while a command writes it.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// startDev runs `stockade dev` on free ports, with these settings, until the test, or stop, ends it. It returns what it
// printed.
func startDev(t *testing.T, path string, set ...string) (b banner, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs console
	ended := make(chan int, 1)
	args := append(devArgs(path), "-o", "json")
	for _, s := range set {
		args = append(args, "--set", s)
	}
	go func() { ended <- run(ctx, args, strings.NewReader(""), &out, &errs, nil) }()
	stop = sync.OnceValue(func() int {
		cancel()
		select {
		case code := <-ended:
			return code
		case <-time.After(devTimeout):
			t.Errorf("dev did not stop; it wrote:\n%s", errs.String())
			return -1
		}
	})
	t.Cleanup(func() { stop() })
	for deadline := time.Now().Add(devTimeout); ; {
		if json.Unmarshal([]byte(out.String()), &b) == nil {
			return b, stop
		}
		if time.Now().After(deadline) {
			t.Fatalf("dev did not start; it wrote:\n%s", errs.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func devArgs(path string) []string {
	return []string{
		"dev", "--set", "store.path=" + path, "--set", "router.public=127.0.0.1:0", "--set", "router.admin=127.0.0.1:0",
	}
}

// Two nodes on one file would each have a Redis of their own, so the second is turned away, until the first has ended.
func TestOneFileHasOneNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "stockade.db")
	_, stop := startDev(t, path)
	got := runWith(t, nil, devArgs(path)...)
	want := fmt.Sprintf("stockade: store.path: %s is in use by another stockade; stop that one, or choose another file\n", path)
	if got.code != exitUnavailable || got.stdout != "" || got.stderr != want {
		t.Errorf("second dev: got %+v, want %q", got, want)
	}
	if code := stop(); code != exitOK {
		t.Errorf("dev ended with %d", code)
	}
	if _, stop = startDev(t, path); stop() != exitOK {
		t.Error("the file cannot be used again")
	}
}

// A start that fails says why in one line, and lets go of what it took.
func TestFailedStarts(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ports := []string{"--set", "router.public=127.0.0.1:0", "--set", "router.admin=127.0.0.1:0"}
	rabbit := []string{"--set", "mq.driver=rabbit", "--set", "mq.url=amqp://127.0.0.1:1/"}
	dead := slices.Concat([]string{"--set", "store.dialect=mysql", "--set", "store.dsn=u@tcp(127.0.0.1:1)/x"}, rabbit, serveCredentials(t))
	tests := []struct {
		name string
		args []string
		says []string
	}{
		{"public port", append(devArgs(filepath.Join(dir, "a.db")), "--set", "router.public="+busy.Addr().String()), []string{"router.public:", busy.Addr().String(), "address already in use"}},
		{"admin port", append(devArgs(filepath.Join(dir, "a.db")), "--set", "router.admin="+busy.Addr().String()), []string{"router.admin:", busy.Addr().String()}},
		{"folder", devArgs(filepath.Join(blocked, "a.db")), []string{"store.path:", blocked}},
		{"database", append(append([]string{"serve"}, ports...), dead...), []string{"store:", "127.0.0.1:1"}},
		{"serve's port", append(append([]string{"serve"}, dead...), "--set", "router.public="+busy.Addr().String(), "--set", "router.admin=127.0.0.1:0"), []string{"router.public:", busy.Addr().String()}},
	}
	for _, tt := range tests {
		got := runWith(t, nil, tt.args...)
		if got.code != exitUnavailable || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got %+v, want status %d and one line", tt.name, got, exitUnavailable)
		}
		for _, part := range tt.says {
			if !strings.Contains(got.stderr, part) {
				t.Errorf("%s: got %q, want it to name %q", tt.name, got.stderr, part)
			}
		}
	}
	if _, stop := startDev(t, filepath.Join(dir, "a.db")); stop() != exitOK {
		t.Error("a failed start left something behind")
	}
}

// serveCredentials are the settings that serve has no default for.
func serveCredentials(t *testing.T) []string {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "admin-tokens.yaml")
	if err := auth.WriteAdminTokens(tokens, nil); err != nil {
		t.Fatal(err)
	}
	return []string{"--set", "auth.adminTokensFile=" + tokens, "--set", "auth.purchaseTokenSecrets=" + strings.Repeat("s", auth.MinSecret)}
}

// What several nodes cannot share is no way to serve, and there is no default for a credential.
func TestServeNeedsRealServersAndCredentials(t *testing.T) {
	all := map[string][]string{
		"store.dialect":             {"store.dialect=mysql", "store.dsn=u@tcp(127.0.0.1:1)/x"},
		"mq.driver":                 {"mq.driver=rabbit", "mq.url=amqp://127.0.0.1:1/"},
		"auth.adminTokensFile":      {"auth.adminTokensFile=" + filepath.Join(t.TempDir(), "none.yaml")},
		"auth.purchaseTokenSecrets": {"auth.purchaseTokenSecrets=" + strings.Repeat("s", auth.MinSecret)},
		"auth.jwtSecrets":           {"auth.jwtSecrets=" + strings.Repeat("j", auth.MinSecret)},
		"auth.audience":             {"auth.audience=shop"},
		"auth.signers":              {"auth.signers=erp:" + strings.Repeat("e", auth.MinSecret)},
	}
	serve := func(without string, more ...string) ran {
		args := append([]string{"serve", "--set", "auth.buyers=header,jwt,signed"}, more...)
		for name, settings := range all {
			for _, s := range settings {
				if name != without {
					args = append(args, "--set", s)
				}
			}
		}
		return runWith(t, nil, args...)
	}
	for setting := range all {
		for _, check := range [][]string{nil, {"--check-config"}} {
			got := serve(setting, check...)
			if got.code != exitConfig || !strings.HasPrefix(got.stderr, "stockade: "+setting) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("without %s %v: got %+v, want status %d and the setting", setting, check, got, exitConfig)
			}
		}
	}
	if got := serve("", "--check-config"); got.code != exitOK {
		t.Errorf("a good configuration: got %+v", got)
	}
	got := serve("", "--set", "router.public=127.0.0.1:0", "--set", "router.admin=127.0.0.1:0")
	if got.code != exitConfig || !strings.HasPrefix(got.stderr, "stockade: auth.adminTokensFile: ") {
		t.Errorf("a file of tokens that is not there: got %+v", got)
	}
	tokens, toggles := filepath.Join(t.TempDir(), "tokens.yaml"), filepath.Join(t.TempDir(), "toggles.yaml")
	for file, text := range map[string]string{tokens: "[]", toggles: "entrance: shut\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all["auth.adminTokensFile"] = []string{"auth.adminTokensFile=" + tokens}
	got = serve("", "--set", "router.public=127.0.0.1:0", "--set", "router.admin=127.0.0.1:0", "--set", "toggles.file="+toggles)
	if got.code != exitConfig || !strings.HasPrefix(got.stderr, "stockade: toggles.file: ") {
		t.Errorf("a file of toggles that cannot be followed: got %+v", got)
	}
}

// Commands meet a real node here, in every form of -o.
func TestSKUCommandsOnARealNode(t *testing.T) {
	b, _ := startDev(t, filepath.Join(t.TempDir(), "stockade.db"))
	env := []string{adminEnv + "=" + b.Admin, publicEnv + "=" + b.Public, adminTokenEnv + "=" + b.Token}
	for _, line := range []string{
		"sku create shoe --total 50 --open", "sku adjust shoe -5", "sku show shoe", "sku show shoe --books",
		"sku show shoe --shares", "sku list", "order list --buyer nobody", "check --wait 10s",
	} {
		for _, format := range formats {
			args := append(strings.Fields(line), "-o", format)
			got := runWith(t, env, args...)
			if strings.HasPrefix(line, "sku create") && format != formats[0] {
				if got.code != exitRefused {
					t.Errorf("%s again: got %+v, want status %d", line, got, exitRefused)
				}
				continue
			}
			if got.code != exitOK || got.stderr != "" {
				t.Errorf("%s -o %s: got %+v", line, format, got)
			}
			if format == "none" && got.stdout != "" || format == "json" && !json.Valid([]byte(got.stdout)) {
				t.Errorf("%s -o %s printed %q", line, format, got.stdout)
			}
		}
	}
	resp, err := http.Get(b.Public + "/v1/skus/shoe")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stock struct{ Left int }
	if err := json.NewDecoder(resp.Body).Decode(&stock); err != nil || stock.Left != 50-4*5 {
		t.Errorf("left %d (%v), want what four adjustments leave", stock.Left, err)
	}
}

// A log file gets a few lines, the last of which says that all is done.
func TestProgressIsShortInAFile(t *testing.T) {
	for total := 1; total <= 250; total++ {
		var out console
		done := showProgress(&out, "things", total)
		var all sync.WaitGroup
		for range total {
			all.Go(done)
		}
		all.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := fmt.Sprintf("things: %d of %d", total, total); len(lines) > 10 || lines[len(lines)-1] != last {
			t.Fatalf("%d: %d lines, the last %q", total, len(lines), lines[len(lines)-1])
		}
	}
}
