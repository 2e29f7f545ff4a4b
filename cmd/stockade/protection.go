package main

import (
	"context"
	"fmt"
	"time"

	"stockade/biz/handler"
	"stockade/limiter"
	"stockade/shard"
)

// scaleEvery is the pause between two looks at the scale of all rates.
const scaleEvery = 200 * time.Millisecond

// protection is what keeps a node from asking more of its machine, or of a sick server, than they can.
type protection struct {
	buckets  *limiter.Limiter
	breakers *limiter.Breakers
	backlog  *limiter.Backlog
	load     *limiter.Load
}

// newProtection comes first of all parts: those that it guards ask it. The operators' word is asked for when it is needed.
func newProtection(n *node) (*protection, error) {
	cfg, forced := n.cfg.Limiter, func(name string) string { return n.toggles.Breaker(name) }
	buckets, err := limiter.New(cfg, time.Now)
	if err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	limiter.SentinelLogTo(n.log)
	breakers, err := limiter.NewBreakers(cfg, limiter.BreakerParts{Forced: forced, Log: n.log})
	if err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	return &protection{
		buckets: buckets, breakers: breakers,
		backlog: limiter.NewBacklog(cfg, limiter.BacklogParts{
			Count:  func(ctx context.Context, limit int64) (int64, error) { return n.db.CountUndelivered(ctx, limit) },
			Forced: forced, Now: time.Now, Log: n.log,
		}),
		load: limiter.NewLoad(cfg, limiter.LoadParts{CPU: limiter.NewCPU(), Forced: forced, Now: time.Now, Log: n.log}),
	}, nil
}

// lane is the breaker of the lane to a Redis master.
func (p *protection) lane(master string) shard.Breaker { return p.breakers.Lane(master) }

// loops are what works in the background.
func (p *protection) loops(scale func() int) []func(context.Context) {
	return []func(context.Context){
		p.breakers.Run, p.backlog.Run, p.load.Run,
		func(ctx context.Context) { p.followScale(ctx, scale) },
	}
}

// followScale has the buckets go by the operators' scale.
func (p *protection) followScale(ctx context.Context, scale func() int) {
	tick := time.NewTicker(scaleEvery)
	defer tick.Stop()
	for {
		p.buckets.SetScale(scale())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// list is every breaker as operators see it.
func (p *protection) list(forced func(name string) string) []handler.BreakerJSON {
	states := append(p.breakers.List(), p.backlog.State(), p.load.State())
	all := make([]handler.BreakerJSON, len(states))
	for i, s := range states {
		all[i] = handler.BreakerJSON{
			Name: s.Name, State: s.State, Forced: forced(s.Name), Changes: int64(s.Changes), Since: s.Since,
			Refused: int64(s.Refused), Why: s.Why,
		}
	}
	return all
}

// waiting is how many accepted orders the broker does not have, nil when nobody knows.
func (p *protection) waiting() *int64 {
	n, known := p.backlog.Waiting()
	if !known {
		return nil
	}
	return &n
}

// figures adds what the protection knows to a node's figures.
func (p *protection) figures(f *handler.NodeJSON, forced func(name string) string) {
	f.Breakers, f.Backlog = p.list(forced), p.waiting()
	f.InFlight, f.AdaptiveShedPercent = p.load.InFlight(), p.load.ShedPercent()
}
