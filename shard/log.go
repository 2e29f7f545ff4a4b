package shard

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends what the Redis client has to say to log, at debug level: all of it comes back as errors of commands too.
// The client knows one logger for the whole process, so this is for main to call, once, before Open.
func LogTo(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

// Printf is called by the client.
func (c clientLog) Printf(ctx context.Context, format string, v ...any) {
	if c.log.Enabled(ctx, slog.LevelDebug) {
		c.log.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
	}
}
