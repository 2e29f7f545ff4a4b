package service_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// board is toggles over a file and a store that a test changes.
type board struct {
	*service.Toggles
	t     *testing.T
	path  string
	store *switches
	clock *clock
	log   bytes.Buffer
}

func newBoard(t *testing.T) *board {
	b := &board{t: t, path: filepath.Join(t.TempDir(), "toggles.yaml"), store: &switches{}, clock: newClock()}
	b.Toggles = service.NewToggles(service.ToggleParts{
		Store: b.store, Hints: noHints{}, File: b.path, Now: b.clock.Now, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
	})
	return b
}

// write replaces the file, with a time of its own, and has it read.
func (b *board) write(text string) {
	b.t.Helper()
	b.clock.advance(2 * time.Second)
	if err := os.WriteFile(b.path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Chtimes(b.path, b.clock.Now(), b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
	b.Load(b.t.Context())
}

func (b *board) set(name, scope, value string, until time.Time) error {
	return b.Set(b.t.Context(), sale.Toggle{Name: name, Scope: scope, Value: value, Reason: "r", Actor: "a", Until: until})
}

func (b *board) want(sku, durability string, source service.ToggleSource) {
	b.t.Helper()
	if got := b.Durability(sku); got != durability {
		b.t.Errorf("durability of %s is %s, want %s", sku, got, durability)
	}
	var found service.ToggleState
	for _, s := range b.List() {
		if s.Name == sale.ToggleDurability && (s.Scope == "" || s.Scope == sku) {
			found = s
		}
	}
	if found.Value != durability || found.Source != source {
		b.t.Errorf("listed %+v, want %s from %s", found, durability, source)
	}
}

func TestTheFileWinsOverTheStoreAndTheStoreOverTheDefault(t *testing.T) {
	b := newBoard(t)
	b.want("demo", sale.DurabilityOutbox, service.ToggleDefault)
	if err := b.set(sale.ToggleDurability, "demo", sale.DurabilityJournal, time.Time{}); err != nil {
		t.Fatal(err)
	}
	b.want("demo", sale.DurabilityJournal, service.ToggleStored)
	b.want("other", sale.DurabilityOutbox, service.ToggleDefault)
	b.write("durability: outbox\nrelay: pause\n")
	b.want("demo", sale.DurabilityOutbox, service.ToggleFile)
	if !b.Paused(sale.ToggleRelay) || b.Paused(sale.ToggleConsumer) {
		t.Error("the file pauses the relay and nothing else")
	}
	b.write("skus:\n  other: {durability: journal}\n")
	b.want("demo", sale.DurabilityJournal, service.ToggleStored)
	b.want("other", sale.DurabilityJournal, service.ToggleFile)
	if b.Paused(sale.ToggleRelay) {
		t.Error("the relay is still paused by a line that is gone")
	}
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
	b.Load(t.Context())
	b.want("other", sale.DurabilityOutbox, service.ToggleDefault)
}

// What was acknowledged under durability journal may be on its way for a while after it.
func TestTheJournalIsOverAMinuteAfterItsToggle(t *testing.T) {
	b := newBoard(t)
	if b.Journal() {
		t.Error("journal by default")
	}
	b.write("skus:\n  other: {durability: journal}\n")
	if !b.Journal() {
		t.Error("no journal though one SKU has it")
	}
	b.write("relay: run\n")
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{50 * time.Second, true}, {20 * time.Second, false}} {
		b.clock.advance(step.after)
		b.Load(t.Context())
		if b.Journal() != step.want {
			t.Errorf("%v later: journal %t", step.after, b.Journal())
		}
	}
}

func TestAFileWithAMistakeChangesNothing(t *testing.T) {
	for _, bad := range []string{
		"durability: jornal\n", "path: mysql\n", "relay: pause\nrelay: run\n", "skus: {demo: {relay: pause}}\n",
		"skus: {\"\": {durability: journal}}\n", "skus: {a/b: {durability: journal}}\n", "durability: [journal]\n", "{\n", "--- {}\n--- {}\n",
		"durability: journal\n" + strings.Repeat("# a long comment\n", 5000),
	} {
		b := newBoard(t)
		b.write("durability: journal\nexpiry: pause\n")
		b.write(bad)
		b.want("demo", sale.DurabilityJournal, service.ToggleFile)
		if !b.Paused(sale.ToggleExpiry) {
			t.Errorf("%q ended a pause", bad)
		}
		if n := strings.Count(b.log.String(), "toggles.file is ignored"); n != 1 {
			t.Errorf("%q was complained about %d times, want once:\n%s", bad, n, &b.log)
		}
		b.Load(t.Context()) // the same version again
		if n := strings.Count(b.log.String(), "toggles.file is ignored"); n != 1 {
			t.Errorf("%q was complained about again", bad)
		}
	}
}

// With every server down the file still works, what was stored stays, and what was to end by now ends.
func TestTogglesWithTheStoreDown(t *testing.T) {
	b := newBoard(t)
	until := b.clock.Now().Add(time.Minute)
	if err := b.set(sale.ToggleDurability, "", sale.DurabilityJournal, until); err != nil {
		t.Fatal(err)
	}
	b.store.fail(true)
	if err := b.set(sale.ToggleRelay, "", sale.WorkPauses, time.Time{}); !errors.Is(err, sale.ErrUnavailable) {
		t.Errorf("set without a store: %v", err)
	}
	b.write("consumer: pause\n")
	b.want("demo", sale.DurabilityJournal, service.ToggleStored)
	if !b.Paused(sale.ToggleConsumer) {
		t.Error("the file is not read while the store is down")
	}
	b.clock.advance(2 * time.Minute)
	b.write("consumer: run\n")
	b.want("demo", sale.DurabilityOutbox, service.ToggleDefault)
}

func TestSetRefusesWhatThereIsNot(t *testing.T) {
	b := newBoard(t)
	good := sale.Toggle{Name: sale.ToggleDurability, Value: sale.DurabilityJournal, Reason: "r", Actor: "a"}
	for field, change := range map[string]func(*sale.Toggle){
		"name":   func(s *sale.Toggle) { s.Name = "pathos" },
		"value":  func(s *sale.Toggle) { s.Value = "run" },
		"scope":  func(s *sale.Toggle) { s.Scope = "a b" },
		"reason": func(s *sale.Toggle) { s.Reason = strings.Repeat("x", service.MaxToggleReason+1) },
		"actor":  func(s *sale.Toggle) { s.Actor = "" },
		"for":    func(s *sale.Toggle) { s.Until = b.clock.Now() },
	} {
		bad := good
		change(&bad)
		var input *sale.InputError
		if err := b.Set(t.Context(), bad); !errors.As(err, &input) || input.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	b.want("demo", sale.DurabilityOutbox, service.ToggleDefault)
	var none *service.Toggles
	if none.Durability("demo") != sale.DurabilityOutbox || none.Paused(sale.ToggleRelay) {
		t.Error("no toggles at all are not at their defaults")
	}
}
