package router

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"stockade/biz/handler"
)

// recovery answers a panic with 500, logs it once, and closes the connection, whose state nobody knows. It also gives
// a problem as body to the errors that hertz answers itself.
func recovery(log *slog.Logger) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		defer func() {
			if r := recover(); r != nil {
				log.Error("panic while serving a request", "panic", fmt.Sprint(r), "route", c.FullPath(),
					"request_id", string(c.Response.Header.Peek(handler.RequestIDHeader)), "stack", string(debug.Stack()))
				(&handler.Problem{Code: handler.Internal}).Write(c)
				c.SetConnectionClose()
				c.Abort()
			}
		}()
		c.Next(ctx)
		if c.Response.StatusCode() == 400 && !c.Response.HasBodyBytes() {
			(&handler.Problem{Code: handler.BadRequest, Field: "Host", Detail: "must be given"}).Write(c)
		}
	}
}

func noRoute(_ context.Context, c *app.RequestContext) {
	(&handler.Problem{Code: handler.RouteNotFound}).Write(c)
}

// noMethod names the methods that the path does have. It looks at every route, which is fine for a mistake.
func noMethod(h *server.Hertz) app.HandlerFunc {
	return func(_ context.Context, c *app.RequestContext) {
		var methods []string
		path := string(c.Path())
		for _, r := range h.Routes() {
			if matches(r.Path, path) {
				methods = append(methods, r.Method)
			}
		}
		slices.Sort(methods)
		c.Response.Header.Set("Allow", strings.Join(methods, ", "))
		(&handler.Problem{Code: handler.MethodNotAllowed}).Write(c)
	}
}

// matches reports whether a path has the form of a route, whose parameters are single segments.
func matches(route, path string) bool {
	want, have := strings.Split(route, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], ":") {
			return false
		}
	}
	return true
}
