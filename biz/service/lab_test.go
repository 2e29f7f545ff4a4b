package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/shard"
	"stockade/store"
)

// lab is one pair of Redis and database that nodes run on.
type lab struct {
	db     *store.DB
	store  store.Config
	shard  shard.Config
	raw    *redis.Client // to damage what the gate holds
	clock  *clock
	config service.Config
	skus   atomic.Int64
	stored switches
}

// newLab runs on the embedded pair. The database file is in memory where the system has a place for that: the lab
// kills processes, not the machine.
func newLab(t *testing.T) *lab {
	t.Helper()
	dir := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "stockade-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(shm) })
		dir = shm
	}
	cfg := store.DefaultConfig()
	cfg.Dialect, cfg.Path = store.SQLite, filepath.Join(dir, "lab.db")
	return buildLab(t, cfg, miniredis.RunT(t).Addr(), "stk")
}

func buildLab(t testing.TB, storeCfg store.Config, redisAddr, prefix string) *lab {
	t.Helper()
	l := &lab{store: storeCfg, shard: shard.DefaultConfig(), clock: newClock(), config: service.DefaultConfig()}
	if err := store.Migrate(t.Context(), storeCfg); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), storeCfg, store.Options{Node: "lab", Now: l.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l.db = db
	l.shard.Addresses, l.shard.Prefix = []string{redisAddr}, prefix
	l.raw = redis.NewClient(&redis.Options{Addr: redisAddr})
	t.Cleanup(func() { _ = l.raw.Close() })
	l.config.Writers = 1
	// Answers must come from the plan of faults, not from a busy machine.
	l.config.PurchaseTimeoutMs, l.config.PromiseTimeoutMs, l.config.JournalAgeMs = 60_000, 60_000, 600_000
	l.shard.IOTimeoutMs, l.shard.FlushTimeoutMs, l.shard.PoolTimeoutMs = 30_000, 30_000, 30_000
	l.config.ReshareWaitMs = 0 // a history has no reshare running beside a purchase: waiting changes nothing
	return l
}

// gate connects another client.
func (l *lab) gate(t *testing.T) *shard.Gate {
	t.Helper()
	g, err := shard.Open(t.Context(), l.shard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// testNode is one node's use cases with its memory.
type testNode struct {
	*faults
	sales        *service.Sales
	resharer     *service.Resharer
	sweeper      *service.JournalSweeper
	watcher      *service.Watcher
	writer       *service.Writer
	catalogue    *cache.Catalogue
	skus         *service.SKUs
	restorer     *service.Restorer
	toggles      *service.Toggles
	healer       *service.Healer
	conservation *service.Conservation
	paused       atomic.Bool // the healer is
}

// node starts a node with an empty memory over an open gate. stop it.
func (l *lab) node(gate *shard.Gate) *testNode {
	log := slog.New(slog.DiscardHandler)
	cfg := cache.DefaultConfig()
	cfg.MaxListings, cfg.MaxNotFound, cfg.MaxFlaggedSKUs, cfg.MaxWinners, cfg.MaxRecent = 16, 16, 16, 1024, 64
	n := &testNode{faults: &faults{}}
	g, db := faultyGate{gate, n.faults}, faultyStore{l.db, n.faults}
	var err error
	if n.catalogue, err = cache.NewCatalogue(cfg, db.Listing, l.clock.Now); err != nil {
		panic(err)
	}
	flags, err := cache.NewFlags(cfg, l.clock.Now)
	if err != nil {
		panic(err)
	}
	recent, err := cache.NewRecent(cfg)
	if err != nil {
		panic(err)
	}
	n.toggles = service.NewToggles(service.ToggleParts{Store: &l.stored, Hints: noHints{}, Now: l.clock.Now, Log: log})
	n.toggles.Load(context.Background())
	n.writer = service.NewWriter(l.config, service.WriterParts{Promiser: db, Gate: g, Relay: noRelay{}, Faults: n.faults})
	n.busy = func() bool { return n.writer.Unfinished() > 0 }
	n.watcher = service.NewWatcher(l.config, service.WatcherParts{Gate: g, Ledgers: db, Flags: flags, Catalogue: n.catalogue, Log: log})
	n.resharer = service.NewResharer(l.config, service.ResharerParts{Ledgers: db, Gate: g, Layer: g, Hints: noHints{}, Faults: n.faults, Log: log})
	n.sweeper = service.NewJournalSweeper(l.config, service.JournalParts{Ledgers: db, Promiser: db, Gate: g, Watcher: n.watcher, Faults: n.faults, Log: log})
	n.restorer = service.NewRestorer(db, g, g, n.resharer, nil, log)
	n.conservation = service.NewConservation(service.ConservationParts{
		Ledgers: db, Gate: g, Books: db, Hints: noHints{}, Now: l.clock.Now, Log: log,
	})
	n.healer = service.NewHealer(service.HealerParts{
		Ledgers: db, Gate: g, Layer: g, Resharer: n.resharer, Conservation: n.conservation,
		Active: n.watcher.Active, Paused: n.paused.Load, Fallback: n.toggles.Fallback, Now: l.clock.Now, Log: log,
	})
	n.skus = service.NewSKUs(service.SKUParts{
		Ledgers: db, Gate: g, Resharer: n.resharer, Catalogue: n.catalogue, Flags: flags, Hints: noHints{}, Books: db,
		Layer: g, Closeouts: db, Conservation: n.conservation, Faults: n.faults, Now: l.clock.Now, Log: log,
	})
	n.sales = service.NewSales(l.config, service.SalesParts{
		Catalogue: n.catalogue, Flags: flags, Gate: g, Writer: n.writer, Orders: db, Recent: recent,
		Watcher: n.watcher, Toggles: n.toggles, Healer: n.healer, Faults: n.faults, Now: l.clock.Now, Log: log,
	})
	return n
}

func (n *testNode) stop() {
	n.outcome()
	n.writer.Close()
	n.catalogue.Close()
}

// newSKU creates, loads and opens a SKU of its own.
func (l *lab) newSKU(ctx context.Context, n *testNode, total int64, sku sale.SKU) (sale.SKU, error) {
	sku.ID = fmt.Sprintf("sku-%d", l.skus.Add(1))
	sku.PaymentWindow = sale.DefaultWindow
	_, err := n.skus.Create(ctx, sku, total)
	if err == nil {
		_, err = n.skus.Load(ctx, sku.ID)
	}
	if err == nil {
		_, err = n.skus.Open(ctx, sku.ID)
	}
	return sku, err
}

// keysOf lists the Redis keys of a SKU, whatever slot counts it had.
func (l *lab) keysOf(ctx context.Context, sku sale.SKU) ([]string, error) {
	var keys []string
	for _, share := range sale.Shares(max(sku.Slots, 8)) {
		found, err := l.raw.Keys(ctx, l.shard.Prefix+":{"+shard.Tag(sku.ID, share)+"}:*").Result()
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// copyOfGate is everything Redis holds of a SKU.
type copyOfGate struct {
	hashes map[string]map[string]string
	sets   map[string][]redis.Z
}

func (l *lab) remember(ctx context.Context, sku sale.SKU) (copyOfGate, error) {
	c := copyOfGate{hashes: map[string]map[string]string{}, sets: map[string][]redis.Z{}}
	keys, err := l.keysOf(ctx, sku)
	if err != nil {
		return c, err
	}
	for _, key := range keys {
		kind, err := l.raw.Type(ctx, key).Result()
		if err != nil {
			return c, err
		}
		if kind == "zset" {
			c.sets[key], err = l.raw.ZRangeWithScores(ctx, key, 0, -1).Result()
		} else {
			c.hashes[key], err = l.raw.HGetAll(ctx, key).Result()
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// putBack makes Redis hold an older copy, or nothing with an empty one: a restart, a failover, an old snapshot.
func (l *lab) putBack(ctx context.Context, sku sale.SKU, c copyOfGate) error {
	keys, err := l.keysOf(ctx, sku)
	if err != nil {
		return err
	}
	_, err = l.raw.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if len(keys) > 0 {
			p.Del(ctx, keys...)
		}
		for key, hash := range c.hashes {
			p.HSet(ctx, key, hash)
		}
		for key, set := range c.sets {
			p.ZAdd(ctx, key, set...)
		}
		return nil
	})
	return err
}
