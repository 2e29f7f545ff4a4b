package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"

	"stockade/conf"
	"stockade/mq"
	"stockade/store"
)

// embedded is a node that brings its own Redis, database file and broker. It is the same node: only the three parts
// behind it are others.
type embedded struct {
	*node
	redis *miniredis.Miniredis
}

// newEmbedded prepares a node on the SQLite file of cfg, which it creates if need be.
func newEmbedded(ctx context.Context, cfg conf.Config, log *slog.Logger) (*embedded, error) {
	cfg.Store.Dialect = store.SQLite
	cfg.MQ.Driver = mq.DriverMemory
	if err := os.MkdirAll(filepath.Dir(cfg.Store.Path), 0o755); err != nil {
		return nil, fmt.Errorf("store.path: %w", err)
	}
	if err := store.Migrate(ctx, cfg.Store); err != nil {
		return nil, err
	}
	redis := miniredis.NewMiniRedis()
	if err := redis.Start(); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	cfg.Shard.Addresses = []string{redis.Addr()}
	n, err := newNode(ctx, cfg, log)
	if err != nil {
		redis.Close()
		return nil, err
	}
	return &embedded{node: n, redis: redis}, nil
}

func (e *embedded) stop(ctx context.Context) error {
	defer e.redis.Close()
	return e.node.stop(ctx)
}
