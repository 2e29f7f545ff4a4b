package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Bounds of one pipeline of credits. Redis works through much of a pipeline before it turns to other connections, so that
// purchases may wait as long as one takes.
const (
	creditCalls  = 16
	creditOrders = 2 * creditBatch
)

// Credit gives closed orders' units and counts back, each once, and tells for each whether its share has it now: one of
// another epoch, sealed or gone has not. After an error some of those that it calls not applied may be: crediting again
// is harmless. sale.ErrNotSent says that this is not so, and that they were never sent.
//
// Credits do not wait in the lanes: they have connections of the pool, one for each master. Between two pipelines to a
// master it waits for as long as the first took, which leaves half of Redis' time to purchases however many credits come.
func (g *Gate) Credit(ctx context.Context, credits []sale.Credit) (applied []bool, err error) {
	applied = make([]bool, len(credits))
	runs, err := g.packCredits(credits)
	if err != nil {
		return applied, err
	}
	byMaster := map[string][]*run{}
	var errs []error
	for _, r := range runs {
		master, err := g.lanes.master(ctx, r.keys)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		byMaster[master] = append(byMaster[master], r)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards errs
	for _, all := range byMaster {
		wg.Go(func() {
			if err := g.sendCredits(ctx, all, applied); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return applied, worst(errs)
}

// packCredits makes the calls of the script: each is for one share under one epoch.
func (g *Gate) packCredits(credits []sale.Credit) ([]*run, error) {
	var runs []*run
	open := map[runKey]*run{}
	for i := range credits {
		c := &credits[i]
		k, err := g.keys.of(c.SKU, c.Share)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(checkTake(c.Buyer, c.Quantity), checkEpoch(c.Epoch)); err != nil {
			return nil, err
		}
		key := runKey{creditScript, k, c.Epoch}
		r := open[key]
		if r == nil || len(r.rows) == creditBatch {
			r = &run{script: creditScript, keys: k, epoch: c.Epoch}
			r.args = []any{c.Epoch, &r.packed}
			runs, open[key] = append(runs, r), r
		}
		r.packed.data = packCredit(r.packed.data, c)
		r.rows = append(r.rows, i)
	}
	return runs, nil
}

// sendCredits sends calls to one master, a pipeline at a time. It stops at the first one with an error: a server in
// trouble is not waited for again and again.
func (g *Gate) sendCredits(ctx context.Context, runs []*run, applied []bool) error {
	for len(runs) > 0 {
		n := nextCredits(runs)
		start := time.Now()
		_ = send(ctx, g.lanes.node, g.client, runs[:n]) // each run has its own error
		if err := readCredits(runs[:n], applied); err != nil {
			return err
		}
		if runs = runs[n:]; len(runs) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", sale.ErrNotSent, ctx.Err())
		case <-time.After(time.Since(start)):
		}
	}
	return nil
}

// nextCredits is how many of these calls make one pipeline.
func nextCredits(runs []*run) (n int) {
	for orders := 0; n < min(len(runs), creditCalls); n++ {
		if orders += len(runs[n].rows); n > 0 && orders > creditOrders {
			break
		}
	}
	return n
}

// readCredits notes what was applied.
func readCredits(runs []*run, applied []bool) error {
	var errs []error
	for _, r := range runs {
		switch {
		case r.err != nil:
			errs = append(errs, r.err)
		case len(r.reply) == 0:
			errs = append(errs, r.malformed())
		case r.reply[0] == replyDone:
			for _, i := range r.rows {
				applied[i] = true
			}
		}
	}
	return worst(errs)
}

// worst picks the error that promises least: one that is sale.ErrNotSent only when all are.
func worst(errs []error) error {
	for _, err := range errs {
		if !errors.Is(err, sale.ErrNotSent) {
			return err
		}
	}
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}
