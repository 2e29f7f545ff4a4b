package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

const followBound = 15 * time.Second // of a node after a toggle; it needs less than a second

// Breakers and the scale of rates follow their toggles on a running node, and say so.
func TestBreakersFollowTheirToggles(t *testing.T) {
	b, _ := startDev(t, filepath.Join(t.TempDir(), "dev.db"))
	env := []string{adminEnv + "=" + b.Admin, publicEnv + "=" + b.Public, adminTokenEnv + "=" + b.Token}
	buyers := 0
	buy := func() string { // its code, and its reason
		buyers++
		req, err := http.NewRequest(http.MethodPost, b.Public+"/v1/skus/demo/orders", strings.NewReader(`{"quantity":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Buyer-Id", fmt.Sprint("breaker-", buyers))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		var answer struct{ Code, Reason string }
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return strings.TrimSpace(answer.Code + " " + answer.Reason)
	}
	await := func(want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(followBound); got != want; time.Sleep(20 * time.Millisecond) {
			if got = buy(); got != want && time.Now().After(deadline) {
				t.Fatalf("purchases are answered %s, want %s", got, want)
			}
		}
	}
	set := func(name, value string) {
		t.Helper()
		if got := runWith(t, env, "toggle", "set", name, value, "--reason", "test"); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	await("ACCEPTED")
	for name, reason := range map[string]sale.Reason{
		sale.BreakerLanes: sale.ReasonBreaker, sale.BreakerOutbox: sale.ReasonBreaker, sale.BreakerBacklog: sale.ReasonBacklog,
		sale.BreakerAdaptive: sale.ReasonOverload,
	} {
		set(sale.ToggleBreaker+name, sale.BreakerOpen)
		await("BUSY " + string(reason))
		listed := runWith(t, env, "breaker", "list", "-o", "json")
		var all handler.BreakersJSON
		if err := json.Unmarshal([]byte(listed.stdout), &all.Breakers); err != nil || listed.code != exitOK {
			t.Fatalf("%+v: %v", listed, err)
		}
		forced := 0
		for _, one := range all.Breakers {
			if one.Forced == sale.BreakerOpen && one.State == sale.BreakerOpen {
				forced++
			}
		}
		if forced != 1 {
			t.Errorf("%s forced open: listed %s", name, listed.stdout)
		}
		set(sale.ToggleBreaker+name, sale.BreakerAuto)
		await("ACCEPTED")
	}
	set(sale.ToggleRateScale, "0")
	await("RATE_LIMITED")
	set(sale.ToggleRateScale, sale.FullRate)
	await("ACCEPTED")
	if table := runWith(t, env, "breaker", "list"); table.code != exitOK || !strings.Contains(table.stdout, "outbox") {
		t.Errorf("%+v", table)
	}
}
