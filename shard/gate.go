// Package shard is the Redis side of a sale: where shares lie, the scripts that admit and settle, the lanes that carry
// calls to them, and the steps a reshare is made of.
package shard

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// ErrGone says that a share's keys are missing where a reshare needs them.
var ErrGone = errors.New("the share's keys are missing")

// settleCall bounds the settlements of one call to a lane.
const settleCall = 512

// Gate is a client of the shares of all SKUs. It is safe for concurrent use.
type Gate struct {
	cfg    Config
	client redis.UniversalClient
	keys   *keyring
	lanes  *lanes
	later  *laterQueue
}

// Option changes a Gate that is being opened.
type Option func(*Gate)

// WithBreaker has every lane ask the breaker that is made for its master, named by host:port in a cluster and by "redis"
// otherwise.
func WithBreaker(make func(master string) Breaker) Option {
	return func(g *Gate) { g.lanes.breaker = make }
}

// Open returns a gate. It fails only when cfg is invalid; whether Redis answers is Ping's to tell, so that a node can
// start while Redis is down. ctx bounds a first try to load the scripts.
func Open(ctx context.Context, cfg Config, options ...Option) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{cfg: cfg, client: cfg.client(), keys: newKeyring(cfg.Prefix, maxCachedSKUs)}
	g.lanes = newLanes(cfg, g.client)
	for _, o := range options {
		o(g)
	}
	_ = g.load(ctx) // a master that missed them gets them with the first call
	g.later = newLaterQueue(cfg.SettleQueue, g.Settle)
	return g, nil
}

// Close settles what waits as long as Redis takes it, ends the lanes, and closes the connections. Later admissions and
// settlements get sale.ErrShuttingDown. Closing twice is harmless.
func (g *Gate) Close() error {
	g.later.close()
	g.lanes.close()
	if err := g.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("shard: close: %w", err)
	}
	return nil
}

// Ping asks every master for a sign of life.
func (g *Gate) Ping(ctx context.Context) error {
	return g.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return master.Ping(ctx).Err()
	})
}

// Waiting is the number of calls in the queues of all lanes.
func (g *Gate) Waiting() int { return g.lanes.waiting() }

// Admit asks one share. See service.Gate for what its errors mean. A request to acknowledge marks its take, and also an
// undecided take of the same id that has no mark yet; the mark stays until the take is decided.
func (g *Gate) Admit(ctx context.Context, req sale.AdmitRequest) (sale.Admission, error) {
	if err := checkAdmit(req); err != nil {
		return sale.Admission{}, err
	}
	k, err := g.keys.of(req.SKU, req.Share)
	if err != nil {
		return sale.Admission{}, err
	}
	return g.lanes.do(ctx, k, query{keys: k, admit: req})
}

func checkAdmit(req sale.AdmitRequest) error {
	if err := checkTake(req.Buyer, req.Quantity); err != nil {
		return err
	}
	if req.Limit < 1 || req.Limit > sale.MaxQuantity {
		return sale.BadInput("limit", fmt.Sprintf("must be a whole number from 1 to %d", sale.MaxQuantity))
	}
	return checkEpoch(req.Epoch)
}

// Settle tells shares how takes ended and waits until they know. After an error some of them may not.
func (g *Gate) Settle(ctx context.Context, s ...sale.Settlement) error {
	var errs error
	byLane := map[string][]settlement{}
	for _, one := range s {
		k, err := g.keys.of(one.SKU, one.Share)
		if err != nil {
			return err
		}
		master, err := g.lanes.master(ctx, k)
		if err != nil {
			return err
		}
		byLane[master] = append(byLane[master], settlement{k, one})
	}
	for _, all := range byLane {
		for len(all) > 0 {
			n := min(len(all), settleCall)
			_, err := g.lanes.do(ctx, all[0].keys, query{settle: all[:n:n]})
			errs = errors.Join(errs, err)
			all = all[n:]
		}
	}
	return errs
}

// SettleLater is Settle without waiting. What does not fit into its queue, or fails, is left to the journal sweeper.
func (g *Gate) SettleLater(s ...sale.Settlement) {
	for _, one := range s {
		g.later.offer(one)
	}
}
