package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

func toggles(t *testing.T, s Subject) {
	ctx := deadline(t)
	listed := func() []sale.Toggle {
		t.Helper()
		all, err := s.DB.Toggles(ctx)
		must(t, err)
		for i := range all {
			if all[i].ChangedAt.IsZero() {
				t.Fatalf("never changed: %+v", all[i])
			}
			all[i].ChangedAt = time.Time{}
		}
		return all
	}
	if got := listed(); len(got) != 0 {
		t.Fatalf("before any was set: %+v", got)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	all := sale.Toggle{
		Name: sale.ToggleDurability, Value: sale.DurabilityJournal, Reason: strings.Repeat("r", 1024),
		Actor: strings.Repeat("a", 128),
	}
	one := all
	one.Scope, one.Value, one.Until = "sku-1", sale.DurabilityOutbox, until
	expired := sale.Toggle{
		Name: sale.ToggleRelay, Value: sale.WorkPauses, Reason: "r", Actor: "a", Until: time.Now().Add(-time.Hour),
	}
	for _, set := range []sale.Toggle{one, all, expired} {
		must(t, s.DB.SetToggle(ctx, set))
	}
	if got := listed(); !slices.Equal(got, []sale.Toggle{all, one}) {
		t.Fatalf("toggles %+v, want %+v and %+v", got, all, one)
	}
	one.Value, one.Until, one.Reason, one.Actor = sale.DurabilityJournal, time.Time{}, "worse now", "b"
	must(t, s.DB.SetToggle(ctx, one))
	if got := listed(); !slices.Equal(got, []sale.Toggle{all, one}) {
		t.Fatalf("toggles %+v, want %+v and %+v", got, all, one)
	}
	for range 2 {
		must(t, s.DB.ClearToggle(ctx, all.Name, ""))
	}
	if got := listed(); !slices.Equal(got, []sale.Toggle{one}) {
		t.Fatalf("toggles %+v, want %+v alone", got, one)
	}
}

func togglesRefuse(t *testing.T, s Subject) {
	ctx := deadline(t)
	good := sale.Toggle{Name: sale.ToggleEntrance, Value: sale.EntranceClosed, Scope: "a", Reason: "r", Actor: "a"}
	for field, breaks := range map[string][]func(*sale.Toggle){
		"name":  {func(t *sale.Toggle) { t.Name = "entrance!" }, func(t *sale.Toggle) { t.Name = "" }},
		"value": {func(t *sale.Toggle) { t.Value = sale.DurabilityJournal }, func(t *sale.Toggle) { t.Value = "" }},
		"scope": {func(t *sale.Toggle) { t.Scope = "{a}" }, func(t *sale.Toggle) { t.Name, t.Value = sale.ToggleExpiry, sale.WorkPauses }},
		"reason": {
			func(t *sale.Toggle) { t.Reason = "" }, func(t *sale.Toggle) { t.Reason = strings.Repeat("r", 1025) },
		},
		"actor": {
			func(t *sale.Toggle) { t.Actor = "" }, func(t *sale.Toggle) { t.Actor = strings.Repeat("a", 129) },
		},
	} {
		for _, breakIt := range breaks {
			bad := good
			breakIt(&bad)
			var input *sale.InputError
			if err := s.DB.SetToggle(ctx, bad); !errors.As(err, &input) || input.Field != field {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	}
	if n := count(t, s, "SELECT COUNT(*) FROM toggle"); n != 0 {
		t.Errorf("%d toggles were refused and stored", n)
	}
	must(t, s.DB.SetToggle(ctx, good))
}
