package shard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// Bounds of a diagnosis.
const (
	diagnoseStep  = time.Second // one question to one master
	diagnosePings = 5
	// Above the first, flushes wait noticeably; above the second, the lanes' breakers call Redis slow.
	pingWarn = 10 * time.Millisecond
	pingFail = 50 * time.Millisecond
)

// vitals are what a master says of itself.
type vitals struct {
	name    string
	pings   []time.Duration
	info    map[string]string // fields of INFO
	save    string            // when it writes snapshots
	saveErr error             // CONFIG is refused, as many managed servers do
	scripts []bool            // which of allScripts it has
	ahead   time.Duration     // of its clock
}

// Diagnose checks every master: whether it answers, and whether it is set up for a sale. Findings come by master. Each
// question is bounded; a master that does not answer is asked no more.
func (g *Gate) Diagnose(ctx context.Context) []sale.Finding {
	var mu sync.Mutex
	byMaster := map[string][]sale.Finding{}
	err := g.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		v, err := examine(ctx, g.nameOf(master), master)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			byMaster[v.name] = []sale.Finding{unanswered(v.name, err)}
		} else {
			byMaster[v.name] = v.judge(g.cfg.PoolSize)
		}
		return nil
	})
	if err != nil || len(byMaster) == 0 {
		return []sale.Finding{unanswered("cluster", cmp.Or(err, errors.New("it has no masters")))}
	}
	var all []sale.Finding
	for _, findings := range byMaster {
		all = append(all, findings...)
	}
	slices.SortStableFunc(all, func(a, b sale.Finding) int { return cmp.Compare(a.Subject, b.Subject) })
	return all
}

func unanswered(name string, err error) sale.Finding {
	return sale.CheckRedisPing.Fail(name, "no answer: "+err.Error(), "start Redis, or correct shard.addresses and the credentials")
}

// nameOf names a master by its address, or by what the sentinels call it.
func (g *Gate) nameOf(master *redis.Client) string {
	return cmp.Or(g.cfg.MasterName, master.Options().Addr)
}

// examine asks one master. An error says which question it did not answer.
func examine(ctx context.Context, name string, master *redis.Client) (v vitals, err error) {
	v.name = name
	step := func(ask func(ctx context.Context) error) {
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, diagnoseStep)
		defer cancel()
		err = ask(ctx)
	}
	// The first one may have to connect.
	step(func(ctx context.Context) error { return master.Ping(ctx).Err() })
	for range diagnosePings {
		step(func(ctx context.Context) error {
			asked := time.Now()
			defer func() { v.pings = append(v.pings, time.Since(asked)) }()
			return master.Ping(ctx).Err()
		})
	}
	step(func(ctx context.Context) error {
		text, err := master.Info(ctx).Result()
		v.info = infoFields(text)
		return err
	})
	step(func(ctx context.Context) error {
		answer, err := master.ConfigGet(ctx, "save").Result()
		var refused redis.Error
		if errors.As(err, &refused) {
			v.saveErr, err = err, nil
		}
		v.save = answer["save"]
		return err
	})
	step(func(ctx context.Context) (err error) {
		hashes := make([]string, len(allScripts))
		for i, s := range allScripts {
			hashes[i] = s.sha
		}
		v.scripts, err = master.ScriptExists(ctx, hashes...).Result()
		return err
	})
	step(func(ctx context.Context) error {
		asked := time.Now()
		server, err := master.Time(ctx).Result()
		took := time.Since(asked)
		v.ahead = server.Sub(asked.Add(took / 2))
		return err
	})
	return v, err
}

// infoFields reads the fields of INFO, whatever their section.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}

// Placement counts the slots of a SKU on each master; masters without any are there with 0. The reserve does not count.
func (g *Gate) Placement(ctx context.Context, sku string, slots int) (map[string]int, error) {
	counts := map[string]int{}
	var mu sync.Mutex
	err := g.eachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		counts[g.nameOf(master)] = 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	for slot := range slots {
		k, err := g.keys.of(sku, sale.Share(slot))
		if err != nil {
			return nil, err
		}
		master, err := g.lanes.node(ctx, k)
		if err != nil {
			return nil, err
		}
		counts[g.nameOf(master)]++
	}
	return counts, nil
}
