package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

// Breaker is asked once before each flush of a lane, so that one sick server refuses only its own share of the calls.
type Breaker interface {
	// Allow returns an error when nothing may be sent now. Otherwise done is called once with the first error of the
	// flush, or nil, and how long Redis took.
	Allow() (done func(err error, took time.Duration), err error)
}

// errUnfinished is what a breaker hears of a flush that did not come to its end.
var errUnfinished = errors.New("the flush did not end")

// alwaysAllow is the breaker of a gate that was given none.
type alwaysAllow struct{}

func (alwaysAllow) Allow() (func(error, time.Duration), error) {
	return func(error, time.Duration) {}, nil
}

// query is what a caller asks a lane: either one admission, or some settlements.
type query struct {
	keys   *keys // of the admission
	admit  sale.AdmitRequest
	settle []settlement
}

type settlement struct {
	keys *keys
	sale.Settlement
}

type call = batch.Call[query, sale.Admission]

// FlushesInFlight is how many flushes of a lane may be on their way at the same time. While Redis works on one, the
// replies of the other are read and the next one gathers: with one, Redis waited for us a third of the time.
const FlushesInFlight = 2

// nodeFunc finds the client of the master that serves a share now.
type nodeFunc func(ctx context.Context, k *keys) (*redis.Client, error)

// lane carries all calls to one master. While flushes are on their way, the next one gathers.
type lane struct {
	calls   *batch.Batcher[query, sale.Admission]
	node    nodeFunc
	client  redis.UniversalClient // follows redirections
	breaker Breaker
	timeout time.Duration
	flights chan *flight // the idle ones of FlushesInFlight
}

// close serves what waits, then ends the lane.
func (l *lane) close() { l.calls.Close() }

// flush serves a group of calls with one pipeline.
func (l *lane) flush(group []*call) {
	f := <-l.flights
	defer func() { l.flights <- f }()
	f.load(group)
	done, err := l.breaker.Allow()
	if err != nil {
		f.fail(fmt.Errorf("%w: %w", sale.ErrNotSent, err))
	} else {
		l.guarded(f, done)
	}
	f.answer(group)
	// Who was just answered often asks again at once: that call should find room in the next flush, not miss it.
	runtime.Gosched()
}

// guarded sends a flight and tells the breaker how that went, whatever happens: one that waits for its probe for ever would
// never close again.
func (l *lane) guarded(f *flight, done func(error, time.Duration)) {
	err := errUnfinished
	start := time.Now()
	defer func() { done(err, time.Since(start)) }()
	// The group outlives any of its callers, so none of their contexts counts.
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	err = l.send(ctx, f)
}

// send is send for the runs of a flight.
func (l *lane) send(ctx context.Context, f *flight) error {
	return send(ctx, l.node, l.client, f.runs())
}

// send runs scripts that are all for one master with one pipeline, and returns the first error; each run has its own.
// What Redis refused without running it is sent again, and nothing else.
func send(ctx context.Context, nodeOf nodeFunc, client redis.UniversalClient, runs []*run) error {
	node, err := nodeOf(ctx, runs[0].keys)
	if err != nil {
		err = fmt.Errorf("%w: %w", sale.ErrNotSent, err)
		for _, r := range runs {
			r.err = err
		}
		return err
	}
	pipeline(ctx, node, runs, false)
	var unknown []*run
	for _, r := range runs {
		if isNoScript(r.err) {
			unknown = append(unknown, r)
		}
	}
	if len(unknown) > 0 {
		pipeline(ctx, node, unknown, true)
	}
	var first error
	for _, r := range runs {
		if isMoved(r.err) {
			r.packed.written = false
			r.reply, r.err = runInts(ctx, client, r.script, r.keys.args[:], r.args)
		}
		if r.err != nil {
			r.err = r.explain()
			first = cmp.Or(first, r.err)
		}
	}
	return first
}

// pipeline sends the runs to one server and reads all their replies. The client makes exactly one try: see intsCmd.
func pipeline(ctx context.Context, node *redis.Client, runs []*run, byText bool) {
	pipe := node.Pipeline()
	cmds := make([]intsCmd, len(runs))
	for i, r := range runs {
		r.packed.written = false
		cmds[i] = intsCmd{redis.NewIntSliceCmd(ctx, evalArgs(r.script, byText, r.keys.args[:], r.args)...)}
		_ = pipe.Process(ctx, cmds[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, r := range runs {
		r.reply, r.err = cmds[i].Result()
	}
}
