package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
)

// waitingFor polls until so many requests want the answer of an order.
func waitingFor(t *testing.T, f *inflight, id sale.OrderID, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		f.mu.Lock()
		fl := f.running[id]
		got := -1
		if fl != nil {
			got = fl.waiting
		}
		f.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests wait, want %d", got, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// Whoever joined gets the answer, also when the client of the request that began it hangs up.
func TestAJoinedRequestOutlivesItsLeader(t *testing.T) {
	f := newInflight()
	id := sale.OrderID{1}
	release := make(chan struct{})
	work := func(ctx context.Context) (sale.Result, error) {
		select {
		case <-release:
			return sale.Result{Code: sale.Accepted}, nil
		case <-ctx.Done():
			return sale.Result{}, ctx.Err()
		}
	}
	leader, hangUp := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() { _, _ = f.do(leader, time.Now().Add(10*time.Second), id, 1, work) })
	waitingFor(t, f, id, 1)
	both.Go(func() {
		if r, err := f.do(t.Context(), time.Now().Add(10*time.Second), id, 1, work); err != nil || r.Code != sale.Accepted || !r.Replayed {
			t.Errorf("joined: %+v, %v", r, err)
		}
	})
	waitingFor(t, f, id, 2)
	if _, err := f.do(t.Context(), time.Now().Add(10*time.Second), id, 2, work); !errors.Is(err, sale.ErrKeyReused) {
		t.Errorf("another quantity: %v", err)
	}
	hangUp()
	waitingFor(t, f, id, 1)
	close(release)
	both.Wait()
	if len(f.running) != 0 {
		t.Errorf("%d entries are left", len(f.running))
	}
}

// Work that nobody waits for ends, and a request that comes while it does begins anew.
func TestAbandonedWorkEnds(t *testing.T) {
	f := newInflight()
	id := sale.OrderID{1}
	ending, ended := make(chan struct{}), make(chan struct{})
	leader, hangUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = f.do(leader, time.Now().Add(10*time.Second), id, 1, func(ctx context.Context) (sale.Result, error) {
			<-ctx.Done()
			close(ending)
			<-ended
			return sale.Result{}, ctx.Err()
		})
	})
	waitingFor(t, f, id, 1)
	hangUp()
	<-ending
	all.Go(func() {
		r, err := f.do(t.Context(), time.Now().Add(10*time.Second), id, 1, func(context.Context) (sale.Result, error) { return sale.Result{Code: sale.Accepted}, nil })
		if err != nil || r.Code != sale.Accepted || r.Replayed {
			t.Errorf("began anew: %+v, %v", r, err)
		}
	})
	close(ended)
	all.Wait()
}

func TestSharedWorkHasATimeout(t *testing.T) {
	f := newInflight()
	_, err := f.do(t.Context(), time.Now().Add(time.Millisecond), sale.OrderID{1}, 1, func(ctx context.Context) (sale.Result, error) {
		<-ctx.Done()
		return sale.Result{}, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Whatever the pattern of requests, no second admits more than the rate and the second's worth that a pause saves up.
func TestPathRate(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newPathRate(100, func() time.Time { return now })
	count := func(span, step time.Duration) (n int) {
		for range span / step {
			now = now.Add(step)
			for r.take() {
				n++
			}
		}
		return n
	}
	if n := count(time.Second, time.Millisecond); n < 99 || n > 101 {
		t.Errorf("%d in the first second, want 100", n)
	}
	if n := count(10*time.Second, 7*time.Millisecond); n < 990 || n > 1001 {
		t.Errorf("%d in ten seconds, want 1000", n)
	}
	now = now.Add(time.Hour)
	if n := count(time.Millisecond, time.Millisecond); n < 99 || n > 101 {
		t.Errorf("%d at once after an hour, want 100", n)
	}
}
