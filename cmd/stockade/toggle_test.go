package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
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
		if r.Method == http.MethodDelete {
			*writes = append(*writes, "DELETE "+r.URL.RequestURI()+" "+r.Header.Get("X-Reason"))
		}
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

// What has no effect on the node that was asked is said, and no time at all is not for ever.
func TestToggleSetThatIsOverruled(t *testing.T) {
	env, writes := toggleAPI(t)
	got := runWith(t, env, "toggle", "set", "durability", "outbox", "--sku", "demo", "--reason", "drill")
	if got.code != exitOK || !strings.Contains(got.stderr, "durability is journal on the node that was asked, by its store") {
		t.Errorf("got %+v", got)
	}
	if got := runWith(t, env, "toggle", "set", "durability", "outbox", "--reason", "drill"); got.code != exitOK || got.stderr != "" {
		t.Errorf("in effect: got %+v", got)
	}
	sent := len(*writes)
	got = runWith(t, env, "toggle", "set", "durability", "outbox", "--reason", "drill", "--for", "0s")
	if got.code != exitData || !strings.Contains(got.stderr, "--for") || len(*writes) != sent {
		t.Errorf("for no time: got %+v", got)
	}
}

func TestToggleUnset(t *testing.T) {
	env, writes := toggleAPI(t)
	for _, args := range [][]string{
		{"toggle", "unset", "durability", "--sku", "demo", "--reason", "over"},
		{"toggle", "unset", "rate_scale", "--reason", "over"},
		{"toggle", "unset", "relay", "--dry-run"},
	} {
		if got := runWith(t, env, args...); got.code != exitOK {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	want := []string{"DELETE " + togglesPath + "/durability?scope=demo over", "DELETE " + togglesPath + "/rate_scale over"}
	if !slices.Equal(*writes, want) {
		t.Errorf("sent %q, want %q", *writes, want)
	}
	for _, args := range [][]string{{"toggle", "unset", "pathos"}, {"toggle", "unset", "entrance", "--sku", "{a}"}} {
		if got := runWith(t, env, args...); got.code != exitData {
			t.Errorf("%v: got %+v", args, got)
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
