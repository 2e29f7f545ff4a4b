package service

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// troubleEvery is the pause between two lines about the same trouble.
const troubleEvery = time.Second

// trouble logs what keeps purchases from a verdict, one line in a while for each message: while a dependency is down
// every purchase meets the same, and a sale has very many.
type trouble struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	lines map[string]*troubleLine // by message; there is one for each place that warns
}

type troubleLine struct {
	next    time.Time // no line before
	skipped int       // since the last one
}

func newTrouble(log *slog.Logger, now func() time.Time) *trouble {
	return &trouble{log: log, now: now, lines: map[string]*troubleLine{}}
}

// warn logs the message, with how often it was left out since the last time.
func (t *trouble) warn(ctx context.Context, message, sku string, err error) {
	if skipped, due := t.due(message); due {
		t.log.WarnContext(ctx, message, "sku", sku, "error", err, "skipped", skipped)
	}
}

func (t *trouble) due(message string) (skipped int, due bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[message]
	if line == nil {
		line = &troubleLine{}
		t.lines[message] = line
	}
	if now.Before(line.next) {
		line.skipped++
		return 0, false
	}
	skipped = line.skipped
	*line = troubleLine{next: now.Add(troubleEvery)}
	return skipped, true
}
