package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// book keeps what was logged.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}

func newToken(t *testing.T, name string, role Role, expires time.Time) (string, AdminToken) {
	t.Helper()
	token, entry, err := NewAdminToken(name, role, noon, expires)
	if err != nil {
		t.Fatal(err)
	}
	return token, entry
}

// office is a file of tokens with a node that follows it.
func office(t *testing.T, entries ...AdminToken) (*AdminTokens, string, *book) {
	t.Helper()
	path, log := filepath.Join(t.TempDir(), "tokens.yaml"), &book{}
	if err := WriteAdminTokens(path, entries); err != nil {
		t.Fatal(err)
	}
	known, err := NewAdminTokens(path, func() time.Time { return noon }, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return known, path, log
}

func TestTokensAreTheirOwn(t *testing.T) {
	ada, first := newToken(t, "ada", RoleAdmin, time.Time{})
	bob, second := newToken(t, "bob", RoleViewer, noon.Add(time.Second))
	old, third := newToken(t, "old", RoleOperator, noon)
	known, path, _ := office(t, first, second, third)
	for _, tt := range []struct {
		token string
		want  Operator
		err   error
	}{
		{ada, Operator{"ada", RoleAdmin}, nil},
		{bob, Operator{"bob", RoleViewer}, nil},
		{old, Operator{}, ErrTokenExpired},
		{"", Operator{}, ErrTokenUnknown},
		{ada[:len(ada)-1], Operator{}, ErrTokenUnknown},
		{ada + "A", Operator{}, ErrTokenUnknown},
		{strings.ToUpper(ada), Operator{}, ErrTokenUnknown},
		{TokenPrefix + strings.Repeat("A", 43), Operator{}, ErrTokenUnknown},
		{first.SHA256, Operator{}, ErrTokenUnknown},
		{strings.Repeat("x", 1<<16), Operator{}, ErrTokenUnknown},
	} {
		if got, err := known.Operator(tt.token); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%.60q: got %v, %v, want %v, %v", tt.token, got, err, tt.want, tt.err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), strings.TrimPrefix(ada, TokenPrefix)) || !strings.Contains(string(text), first.SHA256) {
		t.Errorf("the file must hold hashes alone: %v\n%s", err, text)
	}
	if !ValidToken(ada) || ada == bob {
		t.Errorf("made %q and %q", ada, bob)
	}
}

// A revoked token is refused within two seconds; a broken file changes nothing and is logged once.
func TestTheFileIsFollowed(t *testing.T) {
	ada, first := newToken(t, "ada", RoleAdmin, time.Time{})
	bob, second := newToken(t, "bob", RoleAdmin, time.Time{})
	known, path, log := office(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		known.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	within := func(what string, ok func() bool) {
		t.Helper()
		for begun := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > 2*fileEvery {
				t.Fatalf("not within 2 s: %s", what)
			}
		}
	}
	knows := func(token string) bool {
		_, err := known.Operator(token)
		return err == nil
	}
	for _, broken := range []string{"[", "- {name: x}\n", "- {name: ada, role: admin, sha256: zz}\n"} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		seen := log.count("level=ERROR")
		within("the broken file is logged", func() bool { return log.count("level=ERROR") == seen+1 })
		if !knows(ada) {
			t.Fatalf("%q took the old tokens away", broken)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	within("the missing file is logged", func() bool { return log.count("level=ERROR") == 4 })
	if !knows(ada) {
		t.Fatal("a missing file took the old tokens away")
	}
	if err := WriteAdminTokens(path, []AdminToken{second}); err != nil {
		t.Fatal(err)
	}
	within("ada's token is revoked, bob's is known", func() bool { return !knows(ada) && knows(bob) })
	if err := WriteAdminTokens(path, nil); err != nil {
		t.Fatal(err)
	}
	within("bob's token is revoked too", func() bool { return !knows(bob) })
	if n := log.count("level=ERROR"); n != 4 {
		t.Errorf("%d errors are logged, want one for each broken version", n)
	}
}

func TestBrokenFilesAreRefused(t *testing.T) {
	const entry = `{name: ada, role: admin, sha256: "0000000000000000000000000000000000000000000000000000000000000000"}`
	good := "- " + entry + "\n"
	for text, ok := range map[string]bool{
		"": true, "[]": true, "# nothing\n": true, good: true, good + strings.NewReplacer("ada", "bob", `"00`, `"11`).Replace(good): true,
		good + strings.Replace(good, "ada", "bob", 1): false, // one token, two names
		good + good: false, "ada": false, "{}": false, "- 1\n": false, good + "---\n" + good: false,
		strings.Replace(good, "admin", "king", 1):               false,
		strings.Replace(good, "ada", "stockade", 1):             false,
		strings.Replace(good, "ada", "a b", 1):                  false,
		strings.Replace(good, "0000", "00", 1):                  false,
		strings.Replace(good, "role", "roll", 1):                false,
		strings.Replace(good, "}", ", expires: tomorrow}", 1):   false,
		"- {name: x, role: viewer, token: " + TokenPrefix + "}": false,
	} {
		if _, err := ParseAdminTokens([]byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if _, err := NewAdminTokens(path, time.Now, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "auth.adminTokensFile") {
		t.Errorf("a first file that is not there: %v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxTokenFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewAdminTokens(path, time.Now, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file too large is read")
	}
}

func TestRoles(t *testing.T) {
	for i, have := range Roles {
		for j, least := range Roles {
			if have.May(least) != (i >= j) {
				t.Errorf("%s may what %s may: %v", have, least, have.May(least))
			}
		}
		if Role("").May(have) || Role("root").May(have) || have.May("") {
			t.Errorf("a role that there is not may something, or %s is less than nothing", have)
		}
	}
}
