package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// toggleAPI answers like the admin listener and keeps what it was told.
func toggleAPI(t *testing.T) (env []string, writes *[]string) {
	t.Helper()
	const list = `{"toggles":[{"name":"durability","value":"outbox","reason":"","actor":"","source":"default"},` +
		`{"name":"durability","scope":"demo","value":"journal","reason":"drill","actor":"ann","source":"store"}]}`
	writes = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(body)
			*writes = append(*writes, r.URL.Path+" "+string(body))
		}
		_, _ = w.Write([]byte(list))
	}))
	t.Cleanup(server.Close)
	return []string{adminEnv + "=" + server.URL}, writes
}

func TestToggleSet(t *testing.T) {
	env, writes := toggleAPI(t)
	got := runWith(t, env, "toggle", "set", "durability", "journal", "--sku", "demo", "--reason", "drill", "--for", "10m")
	want := togglesPath + `/durability {"value":"journal","scope":"demo","reason":"drill","for":"10m0s"}`
	if got.code != exitOK || len(*writes) != 1 || (*writes)[0] != want {
		t.Errorf("got %+v, sent %q, want %q", got, *writes, want)
	}
	for _, word := range []string{"demo", "journal", "store", "ann", "drill"} {
		if !strings.Contains(got.stdout, word) {
			t.Errorf("%q is missing in\n%s", word, got.stdout)
		}
	}
}

func TestToggleDryRunSendsNothing(t *testing.T) {
	env, writes := toggleAPI(t)
	got := runWith(t, env, "toggle", "set", "durability", "jornal", "--sku", "demo", "--reason", "drill", "--dry-run")
	if got.code != exitOK || len(*writes) != 0 || !strings.Contains(got.stdout, "durability is journal (store)") ||
		!strings.Contains(got.stdout, "would be refused") {
		t.Errorf("got %+v, sent %q", got, *writes)
	}
}
