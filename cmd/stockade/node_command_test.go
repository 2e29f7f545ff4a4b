package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is an admin API that answers everything alike.
func answering(t *testing.T, body string) (env []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	t.Cleanup(server.Close)
	return []string{adminEnv + "=" + server.URL}
}

func TestNode(t *testing.T) {
	env := answering(t, `{"node":"n1","results":{"ACCEPTED":7,"BUSY":2},"breakers":[{"name":"outbox","state":"open","forced":"open","changes":3}],`+
		`"in_flight":4,"adaptive_shed_percent":10,"backlog":null,"toggles_file":{"path":"/t.yaml","state":"broken","toggles":1,"error":"line 3"}}`)
	got := runWith(t, env, "node")
	for _, words := range []string{"ACCEPTED", "7", "RETRY", "10 %", "not known", "broken: line 3", "breaker outbox", "open, 3 changes, forced open"} {
		if !strings.Contains(got.stdout, words) {
			t.Errorf("%q is missing in\n%s", words, got.stdout)
		}
	}
	if got := runWith(t, env, "node", "-o", "json"); got.code != exitOK || !strings.Contains(got.stdout, `"in_flight": 4`) {
		t.Errorf("as JSON: %+v", got)
	}
	if got := runWith(t, answering(t, `{"toggles":[]}`), "node"); got.code == exitOK {
		t.Error("something else was taken for a node's figures")
	}
}

// A path that did not change everywhere is said so, and ends with the status that means: again.
func TestAPathThatStopsHalfWay(t *testing.T) {
	env := answering(t, `{"toggles":[{"name":"path","value":"redis","source":"default"}],`+
		`"moves":[{"sku":"a","path":"mysql"},{"sku":"b","path":"redis","error":"a server did not answer; ask again"}]}`)
	got := runWith(t, env, "toggle", "set", "path", "mysql", "--reason", "redis is down")
	if got.code != exitTemporary || !strings.Contains(got.stdout, "mysql") || !strings.Contains(got.stderr, "1 of 2") {
		t.Errorf("%+v", got)
	}
	if got := runWith(t, env, "toggle", "set", "path", "mysql", "--reason", "r", "--for", "5m"); got.code != exitUsage {
		t.Errorf("a path for a while: %+v", got)
	}
	if got := runWith(t, env, "toggle", "set", "breaker.lane.nowhere", "open", "--reason", "r"); got.code != exitData {
		t.Errorf("a lane without a port: %+v", got)
	}
}
