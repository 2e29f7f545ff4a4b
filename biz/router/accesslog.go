package router

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/handler"
)

// accessLog writes one line a request. Of refusals, which come by the million in a sale, it writes the first of every
// so many; probes it leaves out.
type accessLog struct {
	log      *slog.Logger
	clients  *clients
	now      func() time.Time
	every    uint64
	refusals atomic.Uint64
}

func (a *accessLog) middleware(ctx context.Context, c *app.RequestContext) {
	start := a.now()
	c.Next(ctx)
	status := c.Response.StatusCode()
	var sampled uint64
	switch {
	case c.FullPath() == "/livez" || c.FullPath() == "/readyz":
		return
	case status >= 400 && status != 500:
		if (a.refusals.Add(1)-1)%a.every != 0 {
			return
		}
		sampled = a.every
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "request",
		slog.String("method", string(c.Method())),
		slog.String("route", c.FullPath()),
		slog.Int("status", status),
		slog.String("code", problemCode(c)),
		slog.Duration("took", a.now().Sub(start)),
		slog.String("client", a.clients.address(c).String()),
		slog.String("request_id", string(c.Response.Header.Peek(handler.RequestIDHeader))),
		slog.Uint64("one_in", max(sampled, 1)),
	)
}

// problemCode reads the code back from the answer: cheaper for the few lines that are written than carrying it along
// with every request.
func problemCode(c *app.RequestContext) string {
	const before = `"code":"`
	body := c.Response.BodyBytes()
	at := bytes.Index(body, []byte(before))
	if at < 0 {
		return ""
	}
	code, _, _ := bytes.Cut(body[at+len(before):], []byte(`"`))
	return string(code)
}
