package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockade/biz/handler"
	"stockade/conf"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConfigShow(t *testing.T) {
	name := configFile(t, "log:\n  level: warn\nstore:\n  dialect: mysql\n")
	env := []string{"STOCKADE_STORE_DSN=u:S3ntinel@tcp(h)/db", "STOCKADE_LOG_FORMAT=json", "STOCKADE_TEST_REDIS=x", adminEnv + "=http://h"}
	got := runWith(t, env, "config", "show", "-c", name, "--origin", "--set", "nodeName=n1")
	if got.code != exitOK || strings.Contains(got.stdout, "S3ntinel") {
		t.Fatalf("got %+v", got)
	}
	rows := map[string]string{}
	for line := range strings.Lines(got.stdout) {
		if cells := strings.Fields(line); len(cells) > 2 {
			rows[cells[0]] = strings.Join(cells[1:], " ")
		}
	}
	for key, want := range map[string]string{
		"log.level": "warn " + name + ":2", "log.format": "json STOCKADE_LOG_FORMAT", "nodeName": "n1 --set",
		"store.dsn": "u:***@tcp(h)/db STOCKADE_STORE_DSN", "router.public": "127.0.0.1:8080 default",
	} {
		if rows[key] != want {
			t.Errorf("%s is %q, want %q", key, rows[key], want)
		}
	}
	var values []conf.Value
	asData := runWith(t, env, "config", "show", "-c", name, "-o", "json")
	if err := json.Unmarshal([]byte(asData.stdout), &values); err != nil || len(values) != len(conf.Entries()) || strings.Contains(asData.stdout, "origin") {
		t.Errorf("-o json: %v, %d values\n%s", err, len(values), asData.stderr)
	}
}

// Both ways to check say the same: nothing, or everything that is wrong.
func TestConfigCheck(t *testing.T) {
	good, bad := configFile(t, "store: {dialect: mysql, dsn: u@tcp(127.0.0.1:1)/x}\nmq: {driver: rabbit, url: \"amqp://127.0.0.1:1/\"}\n"+
		"auth: {adminTokensFile: t.yaml, purchaseTokenSecrets: [\"0123456789abcdef0123456789abcdef\"]}\n"), configFile(t, "log:\n  levl: warn\n  format: xml\n")
	for _, args := range [][]string{{"config", "check"}, {"serve", "--check-config"}} {
		if got := runWith(t, nil, append(args, "-c", good)...); got != (ran{}) {
			t.Errorf("%v: got %+v, want silence", args, got)
		}
		got := runWith(t, nil, append(args, "-c", bad)...)
		for _, part := range []string{bad + ":2: log.levl: unknown key; did you mean level?", bad + ":3: log.format: must be one of text, json"} {
			if got.code != exitConfig || got.stdout != "" || !strings.Contains(got.stderr, part) {
				t.Errorf("%v: %q is missing from %+v", args, part, got)
			}
		}
		got = runWith(t, nil, append(args, "-c", bad, "-o", "json")...)
		var problems []conf.Problem
		if err := json.Unmarshal([]byte(got.stdout), &problems); err != nil || len(problems) != 2 || got.code != exitConfig || got.stderr != "" {
			t.Errorf("%v -o json: got %+v (%v)", args, got, err)
		}
	}
}

// An error behind the configuration does not show its secrets either, and is no mistake of the command line.
func TestErrorsOfServersAreScrubbed(t *testing.T) {
	env := []string{"STOCKADE_STORE_DIALECT=mysql", "STOCKADE_STORE_DSN=S3ntinel:S3ntinel@tcp(127.0.0.1:1)/S3ntinel"}
	got := runWith(t, env, "migrate")
	if got.code != exitUnavailable || got.stdout != "" || got.stderr == "" || strings.Contains(got.stderr, "S3ntinel") {
		t.Errorf("got %+v", got)
	}
	if code := exitCode(errors.New("disk full")); code != exitUnavailable {
		t.Errorf("an error without a status ends with %d", code)
	}
}

func TestConfigReference(t *testing.T) {
	if got := runWith(t, nil, "config", "reference"); got.stdout != conf.Reference() || got.code != exitOK {
		t.Errorf("got %+v", got)
	}
	var entries []conf.Entry
	got := runWith(t, nil, "config", "reference", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &entries); err != nil || !slices.Equal(entries, conf.Entries()) {
		t.Errorf("-o json: %v, %d entries", err, len(entries))
	}
}

func TestErrorsListsEveryCode(t *testing.T) {
	got := runWith(t, nil, "errors")
	var codes []codeView
	asData := runWith(t, nil, "errors", "-o", "json")
	if err := json.Unmarshal([]byte(asData.stdout), &codes); err != nil || len(codes) != len(handler.Codes()) {
		t.Fatalf("-o json: %v, %d codes of %d", err, len(codes), len(handler.Codes()))
	}
	for i, info := range handler.Codes() {
		if !strings.Contains(got.stdout, info.Name) || codes[i].Code != info.Name || (codes[i].Result != nil) != info.Verdict {
			t.Errorf("%s: missing or wrong: %+v", info.Name, codes[i])
		}
	}
}

func TestVersion(t *testing.T) {
	var b build
	got := runWith(t, nil, "version", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil || b.Version == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("got %+v (%v)", got, err)
	}
	if got := runWith(t, nil, "version"); !strings.HasPrefix(got.stdout, "version") {
		t.Errorf("got %+v", got)
	}
}
