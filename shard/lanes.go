package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"stockade/biz/batch"
	"stockade/biz/sale"
)

// maxLanes bounds the lanes of a gate. A cluster that keeps changing its masters' addresses starts over when it is
// reached.
const maxLanes = 256

// onlyMaster names the master of a gate without cluster.
const onlyMaster = "redis"

// lanes finds the lane of a share: one for each master that was ever asked.
type lanes struct {
	cfg     Config
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil without cluster
	breaker func(master string) Breaker

	mu       sync.RWMutex
	byMaster map[string]*lane
	closed   bool
	retired  sync.WaitGroup // lanes that are being closed because there were too many
}

func newLanes(cfg Config, client redis.UniversalClient) *lanes {
	l := &lanes{cfg: cfg, client: client, byMaster: map[string]*lane{}}
	l.cluster, _ = client.(*redis.ClusterClient)
	return l
}

// node is the client of the master that serves a share now.
func (l *lanes) node(ctx context.Context, k *keys) (*redis.Client, error) {
	if l.cluster != nil {
		return l.cluster.MasterForKey(ctx, k.stock)
	}
	if c, ok := l.client.(*redis.Client); ok {
		return c, nil
	}
	return nil, fmt.Errorf("client %T has no masters", l.client)
}

// master names the master that serves a share now.
func (l *lanes) master(ctx context.Context, k *keys) (string, error) {
	if l.cluster == nil {
		return onlyMaster, nil
	}
	node, err := l.node(ctx, k)
	if err != nil {
		return "", fmt.Errorf("%w: %w", sale.ErrNotSent, err)
	}
	return node.Options().Addr, nil
}

// do has a query served by the lane of a share.
func (l *lanes) do(ctx context.Context, k *keys, q query) (sale.Admission, error) {
	for {
		master, err := l.master(ctx, k)
		if err != nil {
			return sale.Admission{}, err
		}
		one, err := l.get(master)
		if err != nil {
			return sale.Admission{}, err
		}
		answer, err := one.calls.Do(ctx, q)
		// A lane that was retired between get and Do took nothing; the next one is open, or the gate is closed.
		if !errors.Is(err, sale.ErrShuttingDown) {
			return answer, err
		}
	}
}

func (l *lanes) get(master string) (*lane, error) {
	l.mu.RLock()
	one, closed := l.byMaster[master], l.closed
	l.mu.RUnlock()
	if closed {
		return nil, sale.ErrShuttingDown
	}
	if one != nil {
		return one, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, sale.ErrShuttingDown
	}
	if one = l.byMaster[master]; one != nil {
		return one, nil
	}
	if len(l.byMaster) >= maxLanes {
		for _, old := range l.byMaster {
			l.retired.Go(old.close)
		}
		clear(l.byMaster)
	}
	one = l.open(master)
	l.byMaster[master] = one
	return one, nil
}

func (l *lanes) open(master string) *lane {
	one := &lane{
		node: l.node, client: l.client, breaker: alwaysAllow{},
		timeout: ms(l.cfg.FlushTimeoutMs), flights: make(chan *flight, FlushesInFlight),
	}
	for range FlushesInFlight {
		one.flights <- &flight{}
	}
	if l.breaker != nil {
		one.breaker = l.breaker(master)
	}
	one.calls = batch.New(batch.Config{Queue: l.cfg.LaneQueue, MaxGroup: l.cfg.FlushCalls, Workers: FlushesInFlight}, one.flush)
	return one
}

func (l *lanes) waiting() (n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, one := range l.byMaster {
		n += one.calls.Waiting()
	}
	return n
}

// close serves what waits and ends all lanes.
func (l *lanes) close() {
	l.mu.Lock()
	l.closed = true
	all := l.byMaster
	l.byMaster = map[string]*lane{}
	l.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	l.retired.Wait()
}
