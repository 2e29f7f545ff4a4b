package router

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/cloudwego/hertz/pkg/app"

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

func noMethod(_ context.Context, c *app.RequestContext) {
	(&handler.Problem{Code: handler.MethodNotAllowed}).Write(c)
}
