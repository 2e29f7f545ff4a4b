package batch_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a server that says when a group arrived and answers only when it is let go.
type gate struct {
	arrived chan []int
	release chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan []int, 100), release: make(chan struct{})} }

func (g *gate) serve(group []*batch.Call[int, int]) {
	queries := make([]int, len(group))
	for i, c := range group {
		queries[i] = c.Query
	}
	g.arrived <- queries
	<-g.release
	for _, c := range group {
		c.Answer(2*c.Query, nil)
	}
}

func TestCallsGatherWhileAGroupIsServed(t *testing.T) {
	g := newGate()
	b := batch.New(batch.Config{Queue: 100, MaxGroup: 8, Workers: 1}, g.serve)
	defer b.Close()
	var callers sync.WaitGroup
	do := func(n int) {
		callers.Go(func() {
			if r, err := b.Do(t.Context(), n); err != nil || r != 2*n {
				t.Errorf("Do(%d) = %d, %v", n, r, err)
			}
		})
	}
	do(1)
	if first := <-g.arrived; len(first) != 1 {
		t.Fatalf("a lone call waited for company: %v", first)
	}
	for n := 2; n <= 11; n++ {
		do(n)
	}
	for b.Waiting() < 10 {
		runtime.Gosched()
	}
	close(g.release)
	if second, third := <-g.arrived, <-g.arrived; len(second) != 8 || len(third) != 2 {
		t.Fatalf("groups of %d and %d, want MaxGroup 8 and the remaining 2", len(second), len(third))
	}
	callers.Wait()
}

func TestFullQueueAndEarlyLeaversAreNeverServed(t *testing.T) {
	g := newGate()
	b := batch.New(batch.Config{Queue: 1, MaxGroup: 8, Workers: 1}, g.serve)
	var callers sync.WaitGroup
	callers.Go(func() { _, _ = b.Do(t.Context(), 1) })
	<-g.arrived // the worker is busy from here on

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.Do(ctx, 2); left <- err }()
	for b.Waiting() < 1 {
		runtime.Gosched()
	}
	if _, err := b.Do(t.Context(), 3); !errors.Is(err, sale.ErrQueueFull) {
		t.Errorf("third call: %v, want ErrQueueFull", err)
	}
	leave()
	if err := <-left; !errors.Is(err, sale.ErrNotSent) {
		t.Errorf("call whose caller left: %v, want ErrNotSent", err)
	}
	close(g.release)
	callers.Wait()
	b.Close()
	close(g.arrived)
	for group := range g.arrived {
		t.Errorf("served %v after its caller was told that it was not sent", group)
	}
	if _, err := b.Do(t.Context(), 4); !errors.Is(err, sale.ErrShuttingDown) {
		t.Errorf("call after Close: %v, want ErrShuttingDown", err)
	}
}

func TestOutcomeIsUnknownWhenTheCallerLeavesWhileServed(t *testing.T) {
	g := newGate()
	b := batch.New(batch.Config{Queue: 1, MaxGroup: 8, Workers: 1}, g.serve)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.Do(ctx, 1); left <- err }()
	<-g.arrived
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled: the call was being served", err)
	}
	close(g.release)
	b.Close()
}

func TestEveryCallIsAnsweredOnceUnderLoad(t *testing.T) {
	b := batch.New(batch.Config{Queue: 4096, MaxGroup: 16, Workers: 2}, func(group []*batch.Call[int, int]) {
		for _, c := range group {
			c.Answer(c.Query, nil)
		}
	})
	var callers sync.WaitGroup
	for n := range 2000 {
		callers.Go(func() {
			if r, err := b.Do(t.Context(), n); err != nil || r != n {
				t.Errorf("Do(%d) = %d, %v", n, r, err)
			}
		})
	}
	callers.Wait()
	b.Close()
}
