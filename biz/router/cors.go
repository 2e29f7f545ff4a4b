package router

import (
	"context"
	"slices"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/handler"
)

const (
	corsMethods = "GET, POST"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, Purchase-Token, X-Buyer-Id, X-Request-Id"
	corsExposed = "Location, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"Idempotent-Replayed, X-Request-Id"
	corsMaxAge = "600" // seconds that a browser may remember a preflight
)

// cors lets pages of the given origins call the public API.
func cors(origins []string) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		c.Response.Header.Add("Vary", "Origin")
		origin := string(c.GetHeader("Origin"))
		if origin == "" || !slices.Contains(origins, origin) {
			c.Next(ctx)
			return
		}
		c.Response.Header.Set("Access-Control-Allow-Origin", origin)
		if string(c.Method()) == "OPTIONS" && len(c.GetHeader("Access-Control-Request-Method")) > 0 {
			c.Response.Header.Set("Access-Control-Allow-Methods", corsMethods)
			c.Response.Header.Set("Access-Control-Allow-Headers", corsHeaders)
			c.Response.Header.Set("Access-Control-Max-Age", corsMaxAge)
			c.AbortWithStatus(204)
			return
		}
		c.Response.Header.Set("Access-Control-Expose-Headers", corsExposed)
		c.Next(ctx)
	}
}

// sameOrigin keeps pages of other origins from calling the admin API through an operator's browser, which reaches
// loopback as well as the operator does.
func sameOrigin(ctx context.Context, c *app.RequestContext) {
	if origin := string(c.GetHeader("Origin")); origin != "" {
		if _, host, _ := strings.Cut(origin, "://"); host == "" || host != string(c.Host()) {
			(&handler.Problem{Code: handler.CrossOrigin, Field: "Origin"}).Write(c)
			c.Abort()
			return
		}
	}
	c.Next(ctx)
}
