package service_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// errInjected is what a call gets when a fault was planned for it.
var errInjected = errors.New("injected fault")

// faultKind is what goes wrong at one step.
type faultKind int

const (
	noFault     faultKind = iota
	lostRequest           // the call does not happen; its caller cannot know that
	lostReply             // the call happens; its caller does not learn of it
	crashBefore           // the process dies before the call
	crashAfter            // the process dies after the call, before it learns of it
)

func (k faultKind) String() string {
	return [...]string{"none", "lost request", "lost reply", "crash before", "crash after"}[k]
}

// faults plans one fault for one operation of a node: at its nth durable step. After a crash no further step happens.
type faults struct {
	mu    sync.Mutex
	at    int // steps until the fault; negative: none
	kind  faultKind
	fired bool
	dead  bool
	busy  func() bool // steps that follow the buyer's answer are under way
}

// plan resets the node's process for the next operation.
func (f *faults) plan(at int, kind faultKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.kind, f.fired, f.dead = at, kind, false, false
}

// step says whether the next step happens, and whether its caller learns of it.
func (f *faults) step() (happens, heard bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return false, false
	}
	if f.kind == noFault || f.at != 0 {
		f.at--
		return true, true
	}
	f.at--
	f.fired = true
	f.dead = f.kind == crashBefore || f.kind == crashAfter
	return f.kind == lostReply || f.kind == crashAfter, false
}

// At makes a point between two steps one more step.
func (f *faults) At(context.Context, sale.Point) error {
	if _, heard := f.step(); !heard {
		return errInjected
	}
	return nil
}

// outcome waits for the steps behind the answer and tells what became of the plan.
func (f *faults) outcome() (fired, dead bool) {
	for f.busy() {
		runtime.Gosched()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired, f.dead
}

// through runs a call as planned.
func through[R any](f *faults, call func() (R, error)) (R, error) {
	var none R
	happens, heard := f.step()
	if !happens {
		return none, errInjected
	}
	r, err := call()
	if !heard {
		return none, errInjected
	}
	return r, err
}

// plainly is through for calls without a result.
func plainly(f *faults, call func() error) error {
	_, err := through(f, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// faultyGate is a gate with planned faults. Reads that change nothing cannot fail here: they would only make answers vague.
type faultyGate struct {
	realGate
	f *faults
}

// realGate is everything that package shard implements.
type realGate interface {
	service.Gate
	service.Layer
}

func (g faultyGate) Admit(ctx context.Context, r sale.AdmitRequest) (sale.Admission, error) {
	return through(g.f, func() (sale.Admission, error) { return g.realGate.Admit(ctx, r) })
}

func (g faultyGate) Settle(ctx context.Context, s ...sale.Settlement) error {
	return plainly(g.f, func() error { return g.realGate.Settle(ctx, s...) })
}

// SettleLater settles at once, so that a history has one order of events.
func (g faultyGate) SettleLater(s ...sale.Settlement) {
	_ = plainly(g.f, func() error { return g.realGate.Settle(context.Background(), s...) })
}

func (g faultyGate) Seal(ctx context.Context, sku string, share sale.Share, epoch int64, limit int) (sale.SealedShare, error) {
	return through(g.f, func() (sale.SealedShare, error) { return g.realGate.Seal(ctx, sku, share, epoch, limit) })
}

func (g faultyGate) SealAll(
	ctx context.Context, sku string, shares []sale.Share, epoch int64, limit int,
) ([]sale.SealedShare, error) {
	return through(g.f, func() ([]sale.SealedShare, error) { return g.realGate.SealAll(ctx, sku, shares, epoch, limit) })
}

func (g faultyGate) Tell(ctx context.Context, sku string, share sale.Share, epoch int64, kept, dropped []sale.PendingTake) error {
	return plainly(g.f, func() error { return g.realGate.Tell(ctx, sku, share, epoch, kept, dropped) })
}

func (g faultyGate) Wipe(ctx context.Context, sku string, share sale.Share, epoch int64) error {
	return plainly(g.f, func() error { return g.realGate.Wipe(ctx, sku, share, epoch) })
}

func (g faultyGate) Fill(ctx context.Context, sku string, share sale.Share, epoch int64, rows []sale.Holding) error {
	return plainly(g.f, func() error { return g.realGate.Fill(ctx, sku, share, epoch, rows) })
}

func (g faultyGate) OpenAll(ctx context.Context, sku string, shares []sale.Share, epoch int64, left []int64) error {
	return plainly(g.f, func() error { return g.realGate.OpenAll(ctx, sku, shares, epoch, left) })
}

// faultyStore is the store with planned faults in its writes.
type faultyStore struct {
	realStore
	f *faults
}

// realStore is everything that package store implements for the use cases.
type realStore interface {
	service.Promiser
	service.Ledgers
	service.Orders
	service.Bookkeeper
	service.Closeouts
}

func (s faultyStore) Promise(ctx context.Context, takes []sale.Take) []sale.Decision {
	decisions, err := through(s.f, func() ([]sale.Decision, error) { return s.realStore.Promise(ctx, takes), nil })
	if err != nil {
		decisions = make([]sale.Decision, len(takes))
		for i := range decisions {
			decisions[i] = sale.Decision{Outcome: sale.Undecided, Err: err}
		}
	}
	return decisions
}

func (s faultyStore) BeginReshare(ctx context.Context, sku string, seen int64, change sale.LedgerChange) (sale.Snapshot, error) {
	happens, heard := s.f.step()
	if !happens {
		return nil, errInjected
	}
	snap, err := s.realStore.BeginReshare(ctx, sku, seen, change)
	if !heard && err == nil {
		_ = snap.Close()
		return nil, errInjected
	}
	return snap, err
}

func (s faultyStore) FinishReshare(ctx context.Context, sku string, epoch int64, full bool, gate string) error {
	return plainly(s.f, func() error { return s.realStore.FinishReshare(ctx, sku, epoch, full, gate) })
}

// noRelay takes what the writer offers; deliveries are not this package's subject.
type noRelay struct{}

func (noRelay) Offer([]sale.Order) {}

// noHints loses every hint: nothing may depend on their arrival.
type noHints struct{}

func (noHints) Send(context.Context, string) error { return nil }

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
