package auth

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// fileEvery is how often files are looked at: what a file says no more is forgotten within two of these.
const fileEvery = time.Second

// watched follows a file. What it holds is the file's last version that can be used: another one is logged once, and
// changes nothing.
type watched[T any] struct {
	setting string // names the file
	path    string
	limit   int // bytes
	parse   func(text []byte) (T, error)
	log     *slog.Logger
	current atomic.Pointer[T]
	seen    []byte // the text of current; of load's caller
	failing string // the error that was logged last
}

// watch reads a file for the first time, when it has to be there and right. Errors name the setting.
func watch[T any](
	setting, path string, limit int, log *slog.Logger, parse func(text []byte) (T, error),
) (*watched[T], error) {
	w := &watched[T]{setting: setting, path: path, limit: limit, parse: parse, log: log}
	if _, err := w.load(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *watched[T]) value() T { return *w.current.Load() }

// run follows the file until ctx ends.
func (w *watched[T]) run(ctx context.Context) {
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(ctx)
		}
	}
}

// look takes over a changed file.
func (w *watched[T]) look(ctx context.Context) {
	changed, err := w.load()
	switch {
	case err != nil && err.Error() != w.failing:
		w.failing = err.Error()
		w.log.ErrorContext(ctx, w.setting+" is ignored, what it said before stays", "error", err)
	case err == nil && (changed || w.failing != ""):
		w.failing = ""
		w.log.InfoContext(ctx, w.setting+" read", "file", w.path)
	}
}

func (w *watched[T]) load() (changed bool, err error) {
	text, err := readBounded(w.path, w.limit)
	if err != nil {
		return false, fmt.Errorf("%s: %w", w.setting, err)
	}
	if w.current.Load() != nil && bytes.Equal(text, w.seen) {
		return false, nil
	}
	value, err := w.parse(text)
	if err != nil {
		return false, fmt.Errorf("%s: %s: %w", w.setting, w.path, err)
	}
	w.seen = text
	w.current.Store(&value)
	return true, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("is larger than %d bytes", limit)
	}
	return text, err
}
