package service_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Bounds of an operator's word, from when it is given until every node goes by it.
const (
	hintBound = time.Second
	pollBound = 3 * time.Second
	fileBound = 3 * time.Second
)

// stuckStore is a store that takes every question and answers none while it is stuck.
type stuckStore struct {
	switches
	stuck bool
}

func (h *stuckStore) Toggles(ctx context.Context) ([]sale.Toggle, error) {
	h.mu.Lock()
	stuck := h.stuck
	h.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.switches.Toggles(ctx)
}

// grapevine brings the hints of one node to the others, unless it is cut.
type grapevine struct {
	nodes []*service.Toggles
	heard []string
	cut   bool
}

func (g *grapevine) Send(_ context.Context, hint string) error {
	g.heard = append(g.heard, hint)
	if !g.cut {
		for _, n := range g.nodes {
			n.Hint()
		}
	}
	return nil
}

// fleet is two nodes that run on one store, each with a file of its own, on a clock that jumps over waits.
type fleet struct {
	grapevine
	t     *testing.T
	store stuckStore
	files []string
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, name := range []string{"a.yaml", "b.yaml"} {
		f.files = append(f.files, filepath.Join(t.TempDir(), name))
		n := service.NewToggles(service.ToggleParts{
			Store: &f.store, Hints: f, File: f.files[len(f.files)-1], Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		n.Load(ctx)
		f.nodes = append(f.nodes, n)
		running.Go(func() { n.Run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return f
}

// within waits until both nodes have the entrance so, and fails when that takes longer than bound.
func (f *fleet) within(bound time.Duration, what string, closed bool) {
	f.t.Helper()
	for begun := time.Now(); f.nodes[0].EntranceClosed("demo") != closed || f.nodes[1].EntranceClosed("demo") != closed; {
		if time.Since(begun) > bound {
			f.t.Fatalf("%s: not within %v", what, bound)
		}
		<-time.After(time.Millisecond)
	}
}

func (f *fleet) set(value string, until time.Time) {
	f.t.Helper()
	err := f.nodes[0].Set(f.t.Context(), sale.Toggle{Name: sale.ToggleEntrance, Value: value, Reason: "r", Actor: "a", Until: until})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) write(text string) {
	f.t.Helper()
	for _, path := range f.files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wait moves the fleet to some moment between its looks.
func (f *fleet) wait(step int) { <-time.After(time.Duration(step) * 137 * time.Millisecond) }

func TestAWordReachesEveryNodeInTime(t *testing.T) {
	for step := range 16 { // at any moment between two looks
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			f.wait(step)
			f.set(sale.EntranceClosed, time.Time{})
			f.within(hintBound, "with a hint", true)
			if len(f.heard) != 1 || f.heard[0] != service.ToggleHint {
				t.Errorf("hinted %q; nobody is to forget a SKU because of a toggle", f.heard)
			}
			f.cut = true
			f.set(sale.EntranceOpen, time.Time{})
			f.within(pollBound, "without hints", false)
			f.set(sale.EntranceClosed, time.Now().Add(10*time.Second))
			f.within(pollBound, "for a time", true)
			<-time.After(10*time.Second - pollBound)
			f.within(pollBound+time.Second, "after its time", false)
		})
	}
}

// With every server away, the file is all there is.
func TestAFileWorksWhileNoServerAnswers(t *testing.T) {
	for step := range 16 {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			f.set(sale.EntranceClosed, time.Now().Add(20*time.Second))
			f.within(hintBound, "stored", true)
			f.store.mu.Lock()
			f.store.stuck = true
			f.store.mu.Unlock()
			<-time.After(10 * time.Second)
			f.within(0, "what was stored stays", true)
			<-time.After(11 * time.Second)
			f.within(0, "and ends when it was to", false)
			f.wait(step)
			for range 20 { // the store's loop is always busy
				f.nodes[0].Hint()
				f.nodes[1].Hint()
			}
			f.write("entrance: closed\n")
			f.within(fileBound, "by file", true)
			for _, path := range f.files {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			f.within(fileBound, "without the file", false)
		})
	}
}

// An editor that cuts the file short before it writes it anew must not open the entrance, and a changed text of the same
// length and time is a change.
func TestAFileIsTakenOverOnlyWhenItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.write("entrance: closed\n")
		f.within(fileBound, "by file", true)
		for range 10 {
			f.write("") // shorter than the time between two looks
			<-time.After(300 * time.Millisecond)
			f.write("entrance: closed\n")
			for range 30 {
				<-time.After(25 * time.Millisecond)
				f.within(0, "half written", true)
			}
		}
		info, err := os.Stat(f.files[0])
		if err != nil {
			t.Fatal(err)
		}
		f.write("entrance: open  \n")
		for _, path := range f.files {
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		f.within(fileBound, "same length, same time", false)
	})
}
