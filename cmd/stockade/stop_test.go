package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A phase that hangs costs the stop its bound and no more, is named, and keeps nobody from being told to end.
func TestAStuckPhaseDoesNotHoldTheStop(t *testing.T) {
	const bound = 200 * time.Millisecond
	for stuck := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		var log bytes.Buffer
		var mu sync.Mutex
		var begun []string
		release := make(chan struct{})
		defer close(release)
		told := make(chan struct{}, 3)
		var phases []phase
		names := []string{"first", "second", "third"}
		for i, name := range names {
			phases = append(phases, phase{name, func(context.Context) error {
				mu.Lock()
				begun = append(begun, name)
				mu.Unlock()
				told <- struct{}{}
				if i == stuck {
					<-release
				}
				return nil
			}})
		}
		began := time.Now()
		err := runPhases(ctx, slog.New(slog.NewTextHandler(&log, nil)), phases)
		if took := time.Since(began); took < bound || took > bound+2*time.Second {
			t.Errorf("phase %d stuck: stopped after %v, want %v", stuck, took, bound)
		}
		if err == nil || !strings.Contains(err.Error(), names[stuck]) || !strings.Contains(log.String(), "phase="+names[stuck]) {
			t.Errorf("phase %d stuck: error %v, log %s; want both to name it", stuck, err, &log)
		}
		for range names {
			<-told // also those behind it
		}
		mu.Lock()
		if slices.Sort(begun); len(begun) != len(names) {
			t.Errorf("phase %d stuck: begun %v, want every one", stuck, begun)
		}
		mu.Unlock()
	}
}

// Phases run one after the other, and their errors are told with their names.
func TestPhasesRunInOrder(t *testing.T) {
	var order []string
	bad := errors.New("cannot")
	step := func(name string, err error) phase {
		return phase{name, func(context.Context) error { order = append(order, name); return err }}
	}
	err := runPhases(t.Context(), slog.New(slog.DiscardHandler), []phase{step("a", nil), step("b", bad), step("c", nil)})
	if !errors.Is(err, bad) || !strings.HasPrefix(err.Error(), "b: ") || !slices.Equal(order, []string{"a", "b", "c"}) {
		t.Errorf("error %v, order %v", err, order)
	}
}
