package router

import (
	"context"

	"github.com/cloudwego/hertz/pkg/app"
)

const (
	// Nothing that this service answers is a page: whatever shows it as one may load and frame nothing.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'"
	// strictTransport keeps browsers from asking without TLS for a year.
	strictTransport = "max-age=31536000"
	noStore         = "no-store"
)

// secured sets the headers that keep browsers and caches from doing anything clever with an answer. Nothing may be
// kept: stock and orders change at any moment.
func secured(tls bool) app.HandlerFunc {
	return func(ctx context.Context, c *app.RequestContext) {
		h := &c.Response.Header
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", noStore)
		if tls {
			h.Set("Strict-Transport-Security", strictTransport)
		}
		c.Next(ctx)
	}
}
