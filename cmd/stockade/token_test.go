package main

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/sale"
)

func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admin-tokens.yaml")
	env := []string{tokensFileEnv + "=" + file}
	var ada, bob tokenView
	for line, into := range map[string]*tokenView{"ada --role admin": &ada, "bob --role viewer --for 12h": &bob} {
		got := runWith(t, env, append(strings.Fields("token create "+line), "-o", "json")...)
		if err := json.Unmarshal([]byte(got.stdout), into); err != nil || got.code != exitOK || !auth.ValidToken(into.Token) {
			t.Fatalf("create %s: %v, %+v", line, err, got)
		}
	}
	if left := time.Until(bob.Expires); left < 11*time.Hour || left > 12*time.Hour || !ada.Expires.IsZero() {
		t.Errorf("bob's token ends in %v, ada's at %v", left, ada.Expires)
	}
	if got := runWith(t, env, "token", "create", "ada", "--role", "viewer"); got.code != exitRefused || strings.Contains(got.stdout, "stk_") {
		t.Errorf("the same name again: %+v", got)
	}
	list := runWith(t, env, "token", "list")
	if list.code != exitOK || strings.Count(list.stdout, "\n") != 3 || strings.Contains(list.stdout, ada.Token) || !strings.Contains(list.stdout, "viewer") {
		t.Errorf("list: %+v", list)
	}
	known, err := auth.ReadAdminTokens(file)
	if err != nil || len(known) != 2 {
		t.Fatalf("the file: %v, %v", known, err)
	}
	if got := runWith(t, env, "token", "revoke", "ada", "--dry-run"); got.code != exitOK || !strings.Contains(got.stdout, "would revoke") {
		t.Errorf("revoke --dry-run: %+v", got)
	}
	if got := runWith(t, nil, "token", "revoke", "ada", "--file", file); got.code != exitOK {
		t.Errorf("revoke: %+v", got)
	}
	if got := runWith(t, nil, "token", "revoke", "ada", "--file", file); got.code != exitRefused {
		t.Errorf("revoke again: %+v", got)
	}
	if known, err = auth.ReadAdminTokens(file); err != nil || len(known) != 1 || !known[0].Matches(bob.Token) {
		t.Errorf("after revoking ada: %v, %v", known, err)
	}
}

// Without a file the entry is printed for whoever writes it, and is what a file takes.
func TestTokenWithoutAFile(t *testing.T) {
	var v tokenView
	got := runWith(t, nil, "token", "create", "ada", "--role", "operator", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}
	entries, err := auth.ParseAdminTokens([]byte(v.Entry))
	if err != nil || len(entries) != 1 || !entries[0].Matches(v.Token) || entries[0].Role != auth.RoleOperator {
		t.Errorf("entry %q: %v, %v", v.Entry, entries, err)
	}
	if got := runWith(t, nil, "token", "create", "ada", "--role", "viewer"); !strings.Contains(got.stdout, "- name: ada") {
		t.Errorf("got %+v", got)
	}
	dry := runWith(t, nil, "token", "create", "ada", "--role", "viewer", "--dry-run")
	if dry.code != exitOK || strings.Contains(dry.stdout, auth.TokenPrefix) {
		t.Errorf("a dry run: %+v", dry)
	}
}

// A broken file is nobody's to overwrite.
func TestABrokenFileOfTokensStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admin-tokens.yaml")
	if err := os.WriteFile(file, []byte("tokens: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runWith(t, nil, "token", "create", "ada", "--role", "admin", "--file", file); got.code != exitConfig || got.stdout != "" {
		t.Errorf("got %+v", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "tokens: []\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// A token comes from the flag, then the environment, then the file of dev, which no other machine is sent.
func TestWhereTheTokenComesFrom(t *testing.T) {
	f := newFake(t)
	f.add("demo", sale.Draft, 5, 0)
	var sent string
	f.look = func(r *http.Request) { sent = r.Header.Get("Authorization") }
	t.Chdir(t.TempDir())
	tokens := map[string]string{}
	for i, from := range []string{"flag", "env", "file"} {
		tokens[from] = auth.TokenPrefix + strings.Repeat(string(rune('B'+i)), 42) + "A"
	}
	env := []string{adminEnv + "=" + f.URL}
	try := func(want string, env []string, args ...string) {
		t.Helper()
		if got := runWith(t, env, append([]string{"sku", "show", "demo"}, args...)...); got.code != exitOK || sent != want {
			t.Errorf("%q: sent %q, want %q; %+v", args, sent, want, got)
		}
	}
	try("", env)
	if err := os.MkdirAll(filepath.Dir(adminTokenFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(adminTokenFile, []byte(tokens["file"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	try("Bearer "+tokens["file"], env)
	try("Bearer "+tokens["env"], append(env, adminTokenEnv+"="+tokens["env"]))
	try("Bearer "+tokens["flag"], append(env, adminTokenEnv+"="+tokens["env"]), "--token", tokens["flag"])
	for base, want := range map[string]bool{
		"http://127.0.0.1:8081": true, "http://[::1]:8081": true, "http://localhost": true, "http://10.0.0.7:8081": false, "https://shop.example": false,
	} {
		if onThisMachine(base) != want {
			t.Errorf("%s is on this machine: %v", base, !want)
		}
	}
}

// Who is refused for want of a token reads where to put one.
func TestARefusedTokenSaysWhereItCameFrom(t *testing.T) {
	f := newFake(t)
	f.refuse = func(w http.ResponseWriter) bool {
		refuse(w, 401, "UNAUTHENTICATED", "Authorization", "")
		return true
	}
	t.Chdir(t.TempDir())
	got := runWith(t, []string{adminEnv + "=" + f.URL}, "sku", "list")
	if got.code != exitDenied || !strings.Contains(got.stderr, "give a token by --token, "+adminTokenEnv) {
		t.Errorf("without a token: %+v", got)
	}
	got = f.try(t, "sku", "list")
	if got.code != exitDenied || !strings.Contains(got.stderr, "the token is from "+adminTokenEnv) || strings.Contains(got.stderr, testToken) {
		t.Errorf("with a wrong one: %+v", got)
	}
}

// The token of dev opens the admin API, outlives a restart, and is for its owner's eyes.
func TestTheTokenOfDev(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stockade.db")
	b, stop := startDev(t, path)
	info, err := os.Stat(b.File)
	if err != nil || info.Mode().Perm() != 0o600 || b.File != filepath.Join(dir, devTokenFile) {
		t.Errorf("the file of the token: %v, %v", info, err)
	}
	env := []string{adminEnv + "=" + b.Admin}
	if got := runWith(t, env, "sku", "list"); got.code != exitDenied {
		t.Errorf("without a token: %+v", got)
	}
	if got := runWith(t, append(env, adminTokenEnv+"="+b.Token), "sku", "list"); got.code != exitOK {
		t.Errorf("with dev's token: %+v", got)
	}
	env = append(env, adminTokenEnv+"="+b.Token)
	if got := runWith(t, env, "sku", "pause", demoSKU, "--reason", "too hot"); got.code != exitOK {
		t.Errorf("pause: %+v", got)
	}
	var lines []sale.AuditEntry
	got := runWith(t, env, "auditlog", "--action", "sku.pause", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &lines); err != nil || len(lines) != 1 || lines[0].Actor != devOperator ||
		lines[0].Reason != "too hot" || lines[0].Target != demoSKU || lines[0].Status != 200 || lines[0].RequestID == "" {
		t.Errorf("audit log: %v, %+v", err, got)
	}
	if code := stop(); code != exitOK {
		t.Fatalf("dev ended with %d", code)
	}
	if again, _ := startDev(t, path); again.Token != b.Token {
		t.Errorf("another start has token %q, the first had %q", again.Token, b.Token)
	}
}

// Every write says why: what --reason says, or the command line without its secrets.
func TestWritesSayWhy(t *testing.T) {
	f := newFake(t)
	f.add("demo", sale.Open, 5, 0)
	var reasons []string
	f.look = func(r *http.Request) { reasons = append(reasons, r.Header.Get("X-Reason")) }
	for _, tt := range []struct {
		args, want string
	}{
		{"sku pause demo", "stockade sku pause demo"},
		{"sku open demo --reason doors", "doors"},
		{"sku pause demo --token " + testToken, "stockade sku pause demo --token ***"},
		{"sku open demo --token=" + testToken, "stockade sku open demo --token=***"},
		{"sku pause demo --reason " + strings.Repeat("ä", 600), strings.Repeat("ä", 512)},
		{"sku show demo", ""},
	} {
		reasons = nil
		got := f.try(t, strings.Fields(tt.args)...)
		if got.code != exitOK || len(reasons) != 1 || reasons[0] != tt.want {
			t.Errorf("%s: %+v, said %q, want %q", tt.args, got, reasons, tt.want)
		}
	}
}

func TestAuditlog(t *testing.T) {
	f := newFake(t)
	var asked string
	f.look = func(r *http.Request) { asked = r.URL.String() }
	f.refuse = func(w http.ResponseWriter) bool {
		reply(w, 200, map[string]any{"entries": []sale.AuditEntry{
			{Seq: 2, At: time.Unix(1e9, 0).UTC(), Actor: "ada", Role: "admin", Action: "sku.open", Target: "demo", Reason: "two\nlines", Status: 200},
			{Seq: 1, At: time.Unix(1e9, 0).UTC(), Actor: sale.ServiceActor, Action: "sku.pause", Target: "demo", Reason: "drift"},
		}})
		return true
	}
	got := f.try(t, "auditlog", "--target", "demo", "--actor", "ada", "--limit", "5")
	if got.code != exitOK || strings.Count(got.stdout, "\n") != 3 || !strings.Contains(got.stdout, "two lines") || asked != auditPath+"?actor=ada&target=demo&limit=5" {
		t.Errorf("asked %s, got %+v", asked, got)
	}
}

// A service with a certificate is believed when --ca-file says so, and nobody else is.
func TestTheCertificateOfTheService(t *testing.T) {
	f := newFake(t)
	f.add("demo", sale.Draft, 5, 0)
	safe := httptest.NewTLSServer(f.Config.Handler)
	defer safe.Close()
	safe.Config.ErrorLog = log.New(io.Discard, "", 0)
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: safe.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env, args []string
		code      int
	}{
		{nil, nil, exitUnavailable},
		{nil, []string{"--ca-file", file}, exitOK},
		{[]string{caFileEnv + "=" + file}, nil, exitOK},
		{nil, []string{"--ca-file", file + ".none"}, exitConfig},
	} {
		got := runWith(t, append(tt.env, adminTokenEnv+"="+testToken), append([]string{"sku", "list", "--admin", safe.URL}, tt.args...)...)
		if got.code != tt.code {
			t.Errorf("%v %v: %+v, want status %d", tt.env, tt.args, got, tt.code)
		}
	}
}
