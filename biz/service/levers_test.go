package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// lanes fakes the SKUs of an installation: they change their paths, but for those that are stuck.
type lanes struct {
	listings []sale.Listing // by id
	stuck    map[string]error
	down     bool
}

func (l *lanes) List(_ context.Context, after string, limit int) ([]sale.Listing, error) {
	if l.down {
		return nil, errDown
	}
	var page []sale.Listing
	for _, listing := range l.listings {
		if listing.ID > after && len(page) < limit {
			page = append(page, listing)
		}
	}
	return page, nil
}

func (l *lanes) Get(_ context.Context, sku string) (sale.Listing, error) {
	if l.down {
		return sale.Listing{}, errDown
	}
	for _, listing := range l.listings {
		if listing.ID == sku {
			return listing, nil
		}
	}
	return sale.Listing{}, sale.ErrNotFound
}

func (l *lanes) Path(_ context.Context, sku string, mode sale.Mode) (sale.Listing, error) {
	for i := range l.listings {
		if l.listings[i].ID != sku {
			continue
		}
		if err := l.stuck[sku]; err != nil {
			return l.listings[i], err
		}
		l.listings[i].Ledger.Mode = mode
		return l.listings[i], nil
	}
	return sale.Listing{}, sale.ErrNotFound
}

// newLevers has SKUs of these names; those called draft have no stock.
func newLevers(t *testing.T, names ...string) (*service.Levers, *lanes, *board) {
	b, ls := newBoard(t), &lanes{stuck: map[string]error{}}
	for _, name := range names {
		listing := sale.Listing{SKU: sale.SKU{ID: name, State: sale.Open}, Ledger: sale.Ledger{Mode: sale.ModeRedis}}
		if name == "draft" {
			listing.State = sale.Draft
		}
		ls.listings = append(ls.listings, listing)
	}
	return service.NewLevers(b.Toggles, ls, slog.New(slog.DiscardHandler)), ls, b
}

func pathTo(mode sale.Mode, sku string) sale.Toggle {
	return sale.Toggle{Name: sale.TogglePath, Scope: sku, Value: string(mode), Reason: "redis is down", Actor: "ann"}
}

// paths lists what the levers say of the path, as "scope value source actor".
func paths(l *service.Levers) []string {
	var all []string
	for _, s := range l.List(context.Background()) {
		if s.Name == sale.TogglePath {
			all = append(all, fmt.Sprintf("%s|%s|%s|%s", s.Scope, s.Value, s.Source, s.Actor))
		}
	}
	return all
}

func wantPaths(t *testing.T, l *service.Levers, want ...string) {
	t.Helper()
	if got := paths(l); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// The path of one SKU, then of all: the answer tells what became of each, and the list goes by the ledgers.
func TestThePathIsAToggle(t *testing.T) {
	l, ls, b := newLevers(t, "a", "b", "draft", "z")
	wantPaths(t, l, "|redis|default|")
	moves, err := l.Set(t.Context(), pathTo(sale.ModeMySQL, "b"))
	if err != nil || fmt.Sprint(moves) != "[{b mysql }]" {
		t.Fatalf("%v, %v", moves, err)
	}
	wantPaths(t, l, "|redis|default|", "b|mysql|ledger|ann")
	ls.stuck["z"] = sale.ErrConflict
	moves, err = l.Set(t.Context(), pathTo(sale.ModeMySQL, ""))
	if err != nil || len(moves) != 3 || moves[0].Path != "mysql" || moves[2].Path != "redis" || moves[2].Error == "" {
		t.Fatalf("%+v, %v", moves, err)
	}
	wantPaths(t, l, "|redis|default|", "a|mysql|ledger|ann", "b|mysql|ledger|ann")
	delete(ls.stuck, "z")
	if moves, err = l.Set(t.Context(), pathTo(sale.ModeMySQL, "")); err != nil || moves[2].Path != "mysql" || moves[2].Error != "" {
		t.Fatalf("a repetition: %+v, %v", moves, err)
	}
	wantPaths(t, l, "|mysql|ledger|ann")
	if b.store.all[[2]string{sale.TogglePath, ""}].Reason != "redis is down" {
		t.Error("nobody can tell later who did it and why")
	}
	if n := len(b.List()); len(l.List(t.Context())) != n+1 {
		t.Errorf("%d toggles listed, want %d", len(l.List(t.Context())), n+1)
	}
	ls.down = true
	wantPaths(t, l, "|unknown|ledger|")
	if len(l.List(t.Context())) != len(b.List())+1 {
		t.Error("without MySQL the other toggles are not listed")
	}
}

func TestThePathIsRefused(t *testing.T) {
	l, ls, b := newLevers(t, "a")
	late := pathTo(sale.ModeMySQL, "")
	late.Until = b.clock.Now().Add(time.Hour)
	for field, bad := range map[string]sale.Toggle{
		"for": late, "value": pathTo("disk", ""), "scope": pathTo(sale.ModeMySQL, "a/b"),
		"reason": {Name: sale.TogglePath, Value: "mysql", Actor: "ann"},
	} {
		var input *sale.InputError
		if _, err := l.Set(t.Context(), bad); !errors.As(err, &input) || input.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := l.Set(t.Context(), pathTo(sale.ModeMySQL, "none")); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("a SKU that there is not: %v", err)
	}
	ls.down = true
	if _, err := l.Set(t.Context(), pathTo(sale.ModeMySQL, "")); err == nil {
		t.Error("set without MySQL")
	}
	if len(b.store.all) > 0 || ls.listings[0].Ledger.Mode != sale.ModeRedis {
		t.Errorf("a refused change left %v and %+v", b.store.all, ls.listings)
	}
}

// With more SKUs than fit on a page, all of them move.
func TestThePathOfVeryManySKUs(t *testing.T) {
	var names []string
	for i := range 450 {
		names = append(names, fmt.Sprintf("sku-%04d", i))
	}
	l, ls, _ := newLevers(t, names...)
	ls.listings[0].State = sale.Paused
	moves, err := l.Set(t.Context(), pathTo(sale.ModeMySQL, ""))
	if err != nil || len(moves) != 450 {
		t.Fatalf("%d moves, %v", len(moves), err)
	}
	wantPaths(t, l, "|mysql|ledger|ann")
	for _, m := range moves {
		if m.Path != "mysql" || m.Error != "" {
			t.Errorf("%+v", m)
		}
	}
}

// An operator in a hurry: a mistyped SKU is an error, closed for all is closed for each, and what was set can be taken back.
func TestAnEntranceClosedForAllIsClosed(t *testing.T) {
	l, _, b := newLevers(t, "shoe", "hat")
	set := func(sku, value string) error {
		_, err := l.Set(t.Context(), sale.Toggle{Name: sale.ToggleEntrance, Scope: sku, Value: value, Reason: "r", Actor: "ann"})
		return err
	}
	want := func(when string, closed ...bool) {
		t.Helper()
		for i, sku := range []string{"shoe", "hat"} {
			if b.EntranceClosed(sku) != closed[i] {
				t.Errorf("%s: %s closed is %v", when, sku, !closed[i])
			}
		}
	}
	if err := set("sheo", sale.EntranceClosed); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("a mistyped SKU: %v", err)
	}
	for _, step := range []struct{ sku, value string }{{"shoe", sale.EntranceOpen}, {"hat", sale.EntranceClosed}} {
		if err := set(step.sku, step.value); err != nil {
			t.Fatal(err)
		}
	}
	want("one by one", false, true)
	if err := set("", sale.EntranceClosed); err != nil {
		t.Fatal(err)
	}
	want("closed for all", true, true)
	if err := l.Clear(t.Context(), sale.ToggleEntrance, ""); err != nil {
		t.Fatal(err)
	}
	want("taken back", false, true)
	if err := l.Clear(t.Context(), sale.ToggleEntrance, "hat"); err != nil {
		t.Fatal(err)
	}
	want("all taken back but one", false, false)
	var bad *sale.InputError
	for name, sku := range map[string]string{"pathos": "", sale.TogglePath: "shoe", sale.ToggleRelay: "shoe", sale.ToggleEntrance: "{a}"} {
		if err := l.Clear(t.Context(), name, sku); !errors.As(err, &bad) {
			t.Errorf("clear %s %s: %v", name, sku, err)
		}
	}
	if err := set("", " "); !errors.As(err, &bad) {
		t.Errorf("no value: %v", err)
	}
	blank := sale.Toggle{Name: sale.ToggleEntrance, Value: sale.EntranceOpen, Reason: " ", Actor: "ann"}
	if _, err := l.Set(t.Context(), blank); !errors.As(err, &bad) || bad.Field != "reason" {
		t.Errorf("a reason of blanks: %v", err)
	}
}
