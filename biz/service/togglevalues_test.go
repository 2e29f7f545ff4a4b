package service_test

import (
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// answers is what the parts of a node ask its toggles, for a SKU.
func answers(t *service.Toggles, sku string) map[string]any {
	return map[string]any{
		sale.ToggleEntrance: t.EntranceClosed(sku), sale.ToggleFallback: t.Fallback(sku), sale.ToggleSoldoutFlag: t.SoldoutFlag(sku),
		sale.ToggleStockRead: t.StockFrozen(sku), sale.ToggleRateScale: t.RateScale(), sale.ToggleDurability: t.Durability(sku),
		sale.ToggleRelay: t.Paused(sale.ToggleRelay), "outbox": t.Breaker(sale.BreakerOutbox), "lane": t.Breaker("lane.a:1"),
	}
}

func wantAnswers(t *testing.T, got map[string]any, changed map[string]any) {
	t.Helper()
	want := map[string]any{
		sale.ToggleEntrance: false, sale.ToggleFallback: true, sale.ToggleSoldoutFlag: true, sale.ToggleStockRead: false,
		sale.ToggleRateScale: 100, sale.ToggleDurability: sale.DurabilityOutbox, sale.ToggleRelay: false,
		"outbox": sale.BreakerAuto, "lane": sale.BreakerAuto,
	}
	for name, value := range changed {
		want[name] = value
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s answers %v, want %v", name, got[name], value)
		}
	}
}

// Every toggle says in its part's words what was set for all SKUs or for one, from the store as from the file.
func TestEveryToggleIsAnswered(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		perSKU      bool
		answer      map[string]any
	}{
		{sale.ToggleEntrance, sale.EntranceClosed, true, map[string]any{sale.ToggleEntrance: true}},
		{sale.ToggleFallback, sale.SwitchOff, true, map[string]any{sale.ToggleFallback: false}},
		{sale.ToggleSoldoutFlag, sale.SwitchOff, true, map[string]any{sale.ToggleSoldoutFlag: false}},
		{sale.ToggleStockRead, sale.StockFrozen, true, map[string]any{sale.ToggleStockRead: true}},
		{sale.ToggleDurability, sale.DurabilityJournal, true, map[string]any{sale.ToggleDurability: sale.DurabilityJournal}},
		{sale.ToggleRateScale, "0", false, map[string]any{sale.ToggleRateScale: 0}},
		{sale.ToggleRelay, sale.WorkPauses, false, map[string]any{sale.ToggleRelay: true}},
		{"breaker.outbox", sale.BreakerOpen, false, map[string]any{"outbox": sale.BreakerOpen}},
		{"breaker.lanes", sale.BreakerOpen, false, map[string]any{"lane": sale.BreakerOpen}},
		{"breaker.lane.a:1", sale.BreakerClosed, false, map[string]any{"lane": sale.BreakerClosed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored, filed := newBoard(t), newBoard(t)
			wantAnswers(t, answers(stored.Toggles, "demo"), nil)
			if err := stored.set(tt.name, "", tt.value, time.Time{}); err != nil {
				t.Fatal(err)
			}
			wantAnswers(t, answers(stored.Toggles, "demo"), tt.answer)
			filed.write(tt.name + ": " + tt.value + "\n")
			wantAnswers(t, answers(filed.Toggles, "demo"), tt.answer)

			one, oneFiled := newBoard(t), newBoard(t)
			err := one.set(tt.name, "demo", tt.value, time.Time{})
			oneFiled.write("skus: {demo: {" + tt.name + ": " + tt.value + "}}\n")
			if !tt.perSKU {
				if err == nil || oneFiled.File().State != service.ToggleFileBroken {
					t.Errorf("set for one SKU: %v, file %+v", err, oneFiled.File())
				}
				return
			}
			for _, b := range []*board{one, oneFiled} {
				wantAnswers(t, answers(b.Toggles, "demo"), tt.answer)
				wantAnswers(t, answers(b.Toggles, "other"), nil)
			}
		})
	}
}

// A lane's own word wins over that for all lanes from the same source; the file's word for all wins over a stored one.
func TestWhichWordALaneGoesBy(t *testing.T) {
	b := newBoard(t)
	for name, value := range map[string]string{"breaker.lanes": sale.BreakerOpen, "breaker.lane.a:1": sale.BreakerAuto} {
		if err := b.set(name, "", value, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, one, other string) {
		t.Helper()
		if b.Breaker("lane.a:1") != one || b.Breaker("lane.b:1") != other {
			t.Errorf("%s: %s and %s, want %s and %s", when, b.Breaker("lane.a:1"), b.Breaker("lane.b:1"), one, other)
		}
	}
	want("stored", sale.BreakerAuto, sale.BreakerOpen)
	b.write("breaker.lanes: closed\n")
	want("filed for all", sale.BreakerClosed, sale.BreakerClosed)
	b.write("breaker.lanes: closed\nbreaker.lane.a:1: open\n")
	want("filed for one", sale.BreakerOpen, sale.BreakerClosed)
	if b.Breaker("nothing") != sale.BreakerAuto {
		t.Error("a breaker that there is not is forced")
	}
}

// What no toggle can be is refused alike, wherever it comes from.
func TestImpossibleTogglesAreRefusedEverywhere(t *testing.T) {
	for _, bad := range [][2]string{
		{"rate_scale", "101"},
		{"rate_scale", "-1"},
		{"rate_scale", "050"},
		{"rate_scale", "50%"},
		{"rate_scale", "x"},
		{"entrance", "shut"},
		{"breaker.lanes", "half-open"},
		{"breaker.disk", "open"},
		{"breaker.lane.a", "open"},
		{"breaker.lane.a:b", "open"},
		{"breaker.lane." + strings.Repeat("a", 60) + ":1", "open"},
		{"breaker.lane.a/b:1", "open"},
		{"breaker.", "auto"},
		{"fallback", "true"},
		{"soldout_flag", ""},
		{"stock_read", "cold"},
	} {
		b := newBoard(t)
		if err := b.set(bad[0], "", bad[1], time.Time{}); err == nil {
			t.Errorf("%s %q was stored", bad[0], bad[1])
		}
		b.write("entrance: closed\n")
		b.write("entrance: open\n" + bad[0] + ": \"" + bad[1] + "\"\n")
		if !b.EntranceClosed("demo") || b.File().State != service.ToggleFileBroken || b.File().Error == "" {
			t.Errorf("%s %q was taken from a file: %+v", bad[0], bad[1], b.File())
		}
		b.store.all = map[[2]string]sale.Toggle{
			{bad[0], ""}:     {Name: bad[0], Value: bad[1], Reason: "r", Actor: "a"},
			{"fallback", ""}: {Name: "fallback", Value: sale.SwitchOff, Reason: "r", Actor: "a"},
		}
		b.Load(t.Context())
		if bad[0] != "fallback" && b.Fallback("demo") || len(b.List()) != len(sale.ToggleKinds())-1 {
			t.Errorf("%s %q in the store spoilt the others", bad[0], bad[1])
		}
	}
}

// A node's file cannot set what the ledgers keep for all nodes.
func TestAFileCannotSetThePath(t *testing.T) {
	b := newBoard(t)
	b.write("path: mysql\n")
	if news := b.File(); news.State != service.ToggleFileBroken || !strings.Contains(news.Error, "all nodes") {
		t.Errorf("%+v", news)
	}
}

// The list has every toggle once for all SKUs, with where it comes from and the page to read.
func TestTheListHasEveryToggle(t *testing.T) {
	b := newBoard(t)
	until := b.clock.Now().Add(time.Hour).UTC()
	if err := b.set(sale.ToggleEntrance, "demo", sale.EntranceClosed, until); err != nil {
		t.Fatal(err)
	}
	b.write("rate_scale: 50\nbreaker.lane.a:1: open\n")
	seen := map[string]service.ToggleState{}
	for _, s := range b.List() {
		if s.Runbook == "" || s.Value == "" {
			t.Errorf("incomplete: %+v", s)
		}
		seen[s.Name+" "+s.Scope] = s
	}
	for _, kind := range sale.ToggleKinds() {
		if _, ok := seen[kind.Name+" "]; ok == (kind.Name == sale.TogglePath) {
			t.Errorf("%s: listed %t", kind.Name, ok)
		}
	}
	if s := seen["entrance demo"]; s.Source != service.ToggleStored || s.Reason != "r" || s.Actor != "a" || !s.Until.Equal(until) {
		t.Errorf("of the store: %+v", s)
	}
	if s := seen["rate_scale "]; s.Source != service.ToggleFile || s.Value != "50" || s.Actor != "this node" || s.ChangedAt.IsZero() {
		t.Errorf("of the file: %+v", s)
	}
	if s := seen["breaker.lane.a:1 "]; s.Source != service.ToggleFile || s.Runbook != "toggle-breaker.md" {
		t.Errorf("of a lane: %+v", s)
	}
}

// Parts ask their toggles for each purchase.
func TestTogglesAnswerWithoutAllocating(t *testing.T) {
	b := newBoard(t)
	b.write("rate_scale: 50\nskus: {demo: {entrance: closed}}\n")
	if n := testing.AllocsPerRun(100, func() { b.EntranceClosed("demo"); b.RateScale(); b.Breaker("lane.a:1"); b.SoldoutFlag("x") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var none *service.Toggles
	wantAnswers(t, answers(none, "demo"), nil)
}
