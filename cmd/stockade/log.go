package main

import (
	"log/slog"

	"stockade/conf"
)

// logger writes to standard error what the configuration asks for. Every line names the node.
func (c *cli) logger(cfg conf.Config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, fail(exitConfig, err)
	}
	node, err := cfg.Node()
	if err != nil {
		return nil, fail(exitConfig, err)
	}
	var h slog.Handler = slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: level})
	if cfg.Log.Format == "json" {
		h = slog.NewJSONHandler(c.stderr, &slog.HandlerOptions{Level: level})
	}
	return slog.New(h).With("node", node), nil
}
