package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// ward answers like the admin listener with one examination, and keeps what it was asked about.
func ward(t *testing.T, e service.Examination) (env []string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.Query()["sku"]
		_ = json.NewEncoder(w).Encode(e)
	}))
	t.Cleanup(server.Close)
	return []string{adminEnv + "=" + server.URL}, asked
}

func TestDoctorSaysHowBadItIs(t *testing.T) {
	fine := sale.CheckRedisEviction.OK("10.0.0.1:6379", "maxmemory-policy noeviction")
	odd := sale.CheckRedisReplicas.Warn("10.0.0.1:6379", "no replica", "add one")
	bad := sale.CheckShareStock.Fail("demo", "share 3 is gone", "stockade reshare demo --full")
	for _, c := range []struct {
		level    sale.Level
		findings []sale.Finding
		code     int
	}{
		{sale.LevelOK, []sale.Finding{fine}, exitOK},
		{sale.LevelWarn, []sale.Finding{fine, odd}, doctorWarnings},
		{sale.LevelFail, []sale.Finding{fine, bad, odd}, doctorFailures},
	} {
		e := service.Examination{Level: c.level, Findings: c.findings}
		env, asked := ward(t, e)
		got := runWith(t, env, "doctor", "demo", "b.c")
		if got.code != c.code || got.stderr != "" || !slices.Equal(*asked, []string{"demo", "b.c"}) {
			t.Errorf("%s: %+v about %v, want status %d", c.level, got, *asked, c.code)
		}
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")[1:]
		for i, f := range c.findings {
			for _, part := range []string{string(f.Check), f.Subject, f.Seen, f.Do} {
				if !strings.HasPrefix(lines[i], string(f.Level)) || !strings.Contains(lines[i], part) {
					t.Errorf("line %q is not about %+v", lines[i], f)
				}
			}
			if named := strings.Contains(lines[i], f.Runbook); named != (f.Level != sale.LevelOK) {
				t.Errorf("line %q names its page: %v", lines[i], named)
			}
		}
		var back service.Examination
		got = runWith(t, env, "doctor", "-o", "json")
		if err := json.Unmarshal([]byte(got.stdout), &back); err != nil || got.code != c.code || len(back.Findings) != len(c.findings) {
			t.Errorf("%s as JSON: %+v, %v", c.level, got, err)
		}
	}
}

func TestAlertRulesAreReadFromAPrometheus(t *testing.T) {
	answer := `{"status":"success","data":{"groups":[{"name":"stockade.sale","rules":[{},{}]},{"name":"stockade.sale","rules":[{}]},{"name":"x","rules":[]}]}}`
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/api/v1/rules" || r.URL.Query().Get("type") != "alert" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	rules := alertRules(server.URL + "/base/")
	groups, err := rules.Groups(t.Context())
	if err != nil || len(groups) != 2 || groups["stockade.sale"] != 3 {
		t.Errorf("groups %v, %v", groups, err)
	}
	answer = "<html>"
	if _, err = rules.Groups(t.Context()); err == nil {
		t.Error("took a page for rules")
	}
	answer, status = "", http.StatusUnauthorized
	if _, err = rules.Groups(t.Context()); err == nil {
		t.Error("took a refusal for rules")
	}
	if alertRules("") != nil {
		t.Error("rules without an address")
	}
}
