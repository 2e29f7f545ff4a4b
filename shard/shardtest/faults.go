package shardtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/shard"
)

// testLostReply cuts the connection after Redis did the work. A client that tried again by itself would find its own
// order and call it a success, or worse, run a script twice.
func testLostReply(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	proxy := newProxy(t, b.address)
	gate := b.open(proxy.address(), nil)
	warm := b.request("warm")
	if _, err := gate.Admit(t.Context(), warm); err != nil {
		t.Fatal(err)
	}
	before := proxy.scripts.Load()
	lost := b.request("ann")
	proxy.spoil.Store(spoilCut)
	a, err := gate.Admit(t.Context(), lost)
	if err == nil || errors.Is(err, sale.ErrNotSent) {
		t.Fatalf("lost reply: %+v, %v", a, err)
	}
	b.expect(0, 8, 2)
	if n := proxy.scripts.Load() - before; n != 1 {
		t.Fatalf("the script was sent %d times", n)
	}
	for _, step := range []func() error{
		func() error { return gate.Settle(t.Context(), settled(lost, a, false)) },
		func() error {
			_, err := gate.Credit(t.Context(), []sale.Credit{{
				SKU: b.sku, Epoch: 1, Order: lost.Order, Buyer: "ann", Quantity: 1,
			}})
			return err
		},
		func() error { return gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, 1, []int64{5}) },
	} {
		before := proxy.scripts.Load()
		if err := step(); err == nil {
			t.Fatal("a lost reply is no error")
		}
		if n := proxy.scripts.Load() - before; n != 1 {
			t.Fatalf("a script was sent %d times", n)
		}
	}
	proxy.spoil.Store(spoilNothing)
	if a, err := gate.Admit(t.Context(), warm); err != nil || a.Verdict != sale.Known {
		t.Fatalf("after the trouble: %+v, %v", a, err)
	}
	b.expect(0, 9, 1) // the credit of the lost admission came through, once
}

// testLateReply has replies come long after the read timeout.
func testLateReply(t *testing.T, b *bench) {
	const timeout, late = 100, 1500 // ms
	b.lay(0, 1, 10)
	proxy := newProxy(t, b.address)
	proxy.late = late * time.Millisecond
	gate := b.open(proxy.address(), func(c *shard.Config) { c.FlushTimeoutMs, c.IOTimeoutMs = timeout, timeout })
	// Waits until a connection is warm, so that the timeout below is the reply's and not the dial's.
	b.eventually("an answer in time", func() bool {
		a, err := gate.Admit(t.Context(), sale.AdmitRequest{SKU: b.sku, Share: 1, Epoch: 1, Buyer: "x", Quantity: 1, Limit: 1})
		return err == nil && a.Verdict == sale.Gone
	})
	before := proxy.scripts.Load()
	proxy.spoil.Store(spoilLate)
	late1 := b.request("ann")
	start := time.Now()
	if a, err := gate.Admit(t.Context(), late1); err == nil || errors.Is(err, sale.ErrNotSent) {
		t.Fatalf("late reply: %+v, %v", a, err)
	}
	if took := time.Since(start); took >= proxy.late {
		t.Fatalf("waited %s for a reply with a timeout of %d ms", took, timeout)
	}
	b.expect(0, 9, 1)
	if n := proxy.scripts.Load() - before; n != 1 {
		t.Fatalf("the script was sent %d times", n)
	}
	proxy.spoil.Store(spoilNothing)
	b.admit(late1, sale.Known)
	b.expect(0, 9, 1)
}

// testNotSent has nobody listen: then it is certain that nothing was taken.
func testNotSent(t *testing.T, b *bench) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	address := ln.Addr().String()
	b.must(ln.Close())
	gate := b.open(address, func(c *shard.Config) { c.FlushTimeoutMs = 500 })
	r := b.request("ann")
	if _, err := gate.Admit(t.Context(), r); !errors.Is(err, sale.ErrNotSent) {
		t.Fatalf("no server: %v", err)
	}
	if err := gate.Settle(t.Context(), settled(r, sale.Admission{}, true)); !errors.Is(err, sale.ErrNotSent) {
		t.Fatalf("no server: %v", err)
	}
	if gate.Ping(t.Context()) == nil {
		t.Fatal("nobody answered the ping")
	}
}

// testNoScript lets Redis forget the scripts again and again while buyers come.
func testNoScript(t *testing.T, b *bench) {
	const buyers, left = 200, 150
	b.lay(0, 1, left)
	var admitted sync.Map
	var wg sync.WaitGroup
	for i := range buyers {
		wg.Go(func() {
			r := b.request(odd(i))
			a, err := b.gate.Admit(t.Context(), r)
			if err != nil {
				t.Errorf("admit: %v", err)
			} else if a.Verdict == sale.Admitted {
				admitted.Store(r.Order, true)
				if err := b.gate.Settle(t.Context(), settled(r, a, true)); err != nil {
					t.Errorf("settle: %v", err)
				}
			}
		})
		if i%10 == 0 {
			b.must(b.raw.ScriptFlush(t.Context()).Err())
		}
	}
	wg.Wait()
	n := 0
	admitted.Range(func(any, any) bool { n++; return true })
	if n != left {
		t.Fatalf("%d admitted, want %d", n, left)
	}
	b.expect(0, 0, 0)
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := b.gate.Seal(ctx, b.sku, 0, 2, 10); return err },
		func() error { return b.gate.Tell(ctx, b.sku, 0, 2, nil, []sale.PendingTake{{}}) },
		func() error { return b.gate.Wipe(ctx, b.sku, 0, 2) },
		func() error { return b.gate.Fill(ctx, b.sku, 0, 2, []sale.Holding{{Buyer: "ann", Quantity: 1}}) },
		func() error { return b.gate.OpenAll(ctx, b.sku, []sale.Share{0}, 2, []int64{1}) },
		func() error { _, err := b.gate.Overdue(ctx, b.sku, 0, 0, 1); return err },
		func() error { return b.gate.Drop(ctx, b.sku, 1, 2) },
		func() error {
			_, err := b.gate.Credit(ctx, []sale.Credit{{SKU: b.sku, Epoch: 2, Buyer: "ann", Quantity: 1}})
			return err
		},
	} {
		b.must(b.raw.ScriptFlush(ctx).Err())
		b.must(step())
	}
}

// occupy sends as many flushes as a lane may have on their way into a proxy that holds them back: what comes next has to
// queue. The returned function waits for their answers.
func (b *bench) occupy(gate *shard.Gate, proxy *proxy, request func() sale.AdmitRequest) (wait func()) {
	b.Helper()
	done := make(chan error, shard.FlushesInFlight)
	for i := range shard.FlushesInFlight {
		go func() {
			_, err := gate.Admit(b.Context(), request())
			done <- err
		}()
		b.eventually("a flush on its way", func() bool { return proxy.waiting.Load() == int64(i+1) })
	}
	return func() {
		for range shard.FlushesInFlight {
			b.must(<-done)
		}
	}
}

// testCallersGone holds flushes up. Who gives up in the queue behind them must never reach Redis, and a full queue says so.
func testCallersGone(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	proxy := newProxy(t, b.address)
	gate := b.open(proxy.address(), func(c *shard.Config) { c.LaneQueue = 1 })
	b.must(gate.Ping(t.Context()))
	before := proxy.scripts.Load()
	proxy.hold()
	first := 0
	inFlight := b.occupy(gate, proxy, func() sale.AdmitRequest { first++; return b.request(fmt.Sprint("first-", first)) })
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := gate.Admit(short, b.request("second")); !errors.Is(err, sale.ErrNotSent) {
		t.Fatalf("gave up in the queue: %v", err)
	}
	if _, err := gate.Admit(t.Context(), b.request("third")); !errors.Is(err, sale.ErrQueueFull) {
		t.Fatalf("behind a full queue: %v", err)
	}
	proxy.release()
	inFlight()
	b.must(gate.Close())
	if f := b.figures(0); f.Pending != shard.FlushesInFlight {
		t.Fatalf("%d units taken, want %d", f.Pending, shard.FlushesInFlight)
	}
	if n := proxy.scripts.Load() - before; n != shard.FlushesInFlight {
		t.Fatalf("%d scripts sent, want %d", n, shard.FlushesInFlight)
	}
}
