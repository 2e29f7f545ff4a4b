package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"

	"stockade/biz/sale"
	"stockade/conf"
	"stockade/mq"
	"stockade/store"
)

// embedded is a node that brings its own Redis, database file and broker. It is the same node: only the three parts
// behind it are others.
type embedded struct {
	*node
	redis *miniredis.Miniredis
	lock  io.Closer // on the database file

	adminToken string // path of the file with the operator's token; empty when others are configured
}

// embeddedRedisMs is the least time that the embedded Redis gets for an answer.
const embeddedRedisMs = 5000

// newEmbedded prepares a node on the SQLite file of cfg, which it creates if need be.
func newEmbedded(ctx context.Context, cfg conf.Config, log *slog.Logger) (*embedded, error) {
	cfg.Store.Dialect = store.SQLite
	cfg.MQ.Driver = mq.DriverMemory
	// This Redis is in our process: when it is slow, so are we, and to give up on it would help nobody.
	cfg.Limiter.Lanes.SlowPercent = 0
	cfg.Shard.IOTimeoutMs = max(cfg.Shard.IOTimeoutMs, embeddedRedisMs)
	cfg.Shard.FlushTimeoutMs = max(cfg.Shard.FlushTimeoutMs, embeddedRedisMs)
	devSecrets(&cfg)
	listeners, err := takePorts(cfg)
	if err != nil {
		return nil, err
	}
	e := &embedded{}
	cfg, err = e.prepare(ctx, cfg)
	if err != nil {
		listeners.Close()
		return nil, errors.Join(err, e.release())
	}
	if e.node, err = newNode(ctx, cfg, log, listeners, sale.NoFaults{}); err != nil {
		return nil, errors.Join(err, e.release())
	}
	return e, nil
}

// prepare locks and migrates the file, makes an operator's token and starts Redis, all of which it puts into the configuration.
func (e *embedded) prepare(ctx context.Context, cfg conf.Config) (conf.Config, error) {
	if err := os.MkdirAll(filepath.Dir(cfg.Store.Path), 0o755); err != nil {
		return cfg, fmt.Errorf("store.path: %w", err)
	}
	lock, err := lockFile(cfg.Store.Path + ".lock")
	switch {
	case errors.Is(err, errLocked):
		// Each would sell by a Redis of its own, and know nothing of what the other one admits.
		return cfg, fmt.Errorf("store.path: %s is in use by another stockade; stop that one, or choose another file",
			cfg.Store.Path)
	case err != nil:
		return cfg, fmt.Errorf("store.path: %w", err)
	}
	e.lock = lock
	if e.adminToken, err = devOperators(&cfg); err != nil {
		return cfg, err
	}
	if err := store.Migrate(ctx, cfg.Store); err != nil {
		return cfg, err
	}
	redis := miniredis.NewMiniRedis()
	if err := redis.Start(); err != nil {
		return cfg, fmt.Errorf("embedded Redis: %w", err)
	}
	e.redis = redis
	cfg.Shard.Addresses = []string{redis.Addr()}
	return cfg, nil
}

func (e *embedded) stop(ctx context.Context) error {
	return errors.Join(e.node.stop(ctx), e.release())
}

// release ends what prepare began, as far as it got.
func (e *embedded) release() error {
	if e.redis != nil {
		e.redis.Close()
	}
	if e.lock != nil {
		return e.lock.Close()
	}
	return nil
}
