package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/cloudwego/hertz/pkg/common/hlog"
)

// UseLogger sends what hertz itself has to say to log, at debug level: start-up chatter, and connections that clients
// broke, which hertz calls errors. hertz has one logger for the whole process, so the program calls this once.
func UseLogger(log *slog.Logger) {
	hlog.SetLogger(hertzLog{log})
	hlog.SetSystemLogger(hertzLog{log})
}

type hertzLog struct{ log *slog.Logger }

func (h hertzLog) print(v []any) {
	if h.log.Enabled(context.Background(), slog.LevelDebug) {
		h.log.Debug("hertz", "said", fmt.Sprint(v...))
	}
}

func (h hertzLog) printf(format string, v []any) {
	if h.log.Enabled(context.Background(), slog.LevelDebug) {
		h.log.Debug("hertz", "said", fmt.Sprintf(format, v...))
	}
}

func (h hertzLog) Trace(v ...any)  { h.print(v) }
func (h hertzLog) Debug(v ...any)  { h.print(v) }
func (h hertzLog) Info(v ...any)   { h.print(v) }
func (h hertzLog) Notice(v ...any) { h.print(v) }
func (h hertzLog) Warn(v ...any)   { h.print(v) }
func (h hertzLog) Error(v ...any)  { h.print(v) }
func (h hertzLog) Fatal(v ...any)  { h.print(v) }

func (h hertzLog) Tracef(format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) Debugf(format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) Infof(format string, v ...any)   { h.printf(format, v) }
func (h hertzLog) Noticef(format string, v ...any) { h.printf(format, v) }
func (h hertzLog) Warnf(format string, v ...any)   { h.printf(format, v) }
func (h hertzLog) Errorf(format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) Fatalf(format string, v ...any)  { h.printf(format, v) }

func (h hertzLog) CtxTracef(_ context.Context, format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) CtxDebugf(_ context.Context, format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) CtxInfof(_ context.Context, format string, v ...any)   { h.printf(format, v) }
func (h hertzLog) CtxNoticef(_ context.Context, format string, v ...any) { h.printf(format, v) }
func (h hertzLog) CtxWarnf(_ context.Context, format string, v ...any)   { h.printf(format, v) }
func (h hertzLog) CtxErrorf(_ context.Context, format string, v ...any)  { h.printf(format, v) }
func (h hertzLog) CtxFatalf(_ context.Context, format string, v ...any)  { h.printf(format, v) }

// SetLevel and SetOutput do nothing: the level and the output are the slog.Logger's.
func (hertzLog) SetLevel(hlog.Level) {}
func (hertzLog) SetOutput(io.Writer) {}
