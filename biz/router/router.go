// Package router builds the two HTTP servers of a node, the buyers' and the operators', with their routes, their
// middleware and the description of the API.
package router

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"

	"stockade/biz/auth"
	"stockade/biz/handler"
)

// maxHeaders bounds a request's head, in bytes.
const maxHeaders = 16 << 10

//go:embed openapi.yaml
var openAPI []byte

// Parts are what the servers are made of.
type Parts struct {
	Sales  handler.Sales
	Orders handler.Orders
	Stock  handler.Stock
	SKUs   handler.SKUs
	Upkeep handler.Upkeep
	Health handler.Health
	Doctor handler.Doctor

	Settlements handler.Settlements
	DeadLetters handler.DeadLetters
	Toggles     handler.Toggles
	AuditLog    handler.AuditLog
	Node        handler.NodeFigures

	Operators Operators // nil: nobody is let into the admin API
	Audit     Audit
	Buyers    *auth.Buyers         // nil: nobody can buy
	Tokens    *auth.PurchaseTokens // nil: PURCHASE_TOKENS_DISABLED
	Limits    Limits
	Winners   Winners
	Results   Results // nil: nobody counts
	Load      Load    // nil: nothing is too much
	Now       func() time.Time
	Log       *slog.Logger
}

// Servers are the two HTTP servers of a node.
type Servers struct {
	public, admin     *server.Hertz
	publicAt, adminAt net.Listener
	streams           *handler.Streams
	connections       *connections
	certificates      [2]*certificate // nil: no TLS
	drain             time.Duration

	mu      sync.Mutex
	running bool
	stopped bool
	ended   chan struct{} // closed when both servers have ended
}

// Listeners are the two addresses of a node, taken before anything else starts.
type Listeners struct {
	cfg           Config
	public, admin net.Listener

	publicCert, adminCert *certificate // nil: no TLS
}

// Listen checks the configuration and takes both addresses. An address that cannot be taken is an error that names it
// and its setting.
func Listen(cfg Config) (*Listeners, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	publicCert, err := newCertificate(cfg.TLSCertFile, cfg.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("tlsCertFile: %w", err)
	}
	adminCert, err := newCertificate(cfg.AdminTLSCertFile, cfg.AdminTLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("adminTlsCertFile: %w", err)
	}
	public, err := listen("public", cfg.Public)
	if err != nil {
		return nil, err
	}
	admin, err := listen("admin", cfg.Admin)
	if err != nil {
		_ = public.Close()
		return nil, err
	}
	return &Listeners{cfg: cfg, public: public, admin: admin, publicCert: publicCert, adminCert: adminCert}, nil
}

// Close gives the addresses up; servers close theirs themselves.
func (l *Listeners) Close() { _, _ = l.public.Close(), l.admin.Close() }

// New returns servers on these addresses, which Run starts.
func New(l *Listeners, p Parts) *Servers {
	cfg, public, admin := l.cfg, l.public, l.admin
	s := &Servers{
		publicAt: public, adminAt: admin, drain: ms(cfg.DrainTimeoutMs), certificates: [2]*certificate{l.publicCert, l.adminCert},
		connections: newConnections(), ended: make(chan struct{}),
		streams: handler.NewStreams(handler.StreamLimits{
			MaxStreams: cfg.MaxStreams, Poll: ms(cfg.StreamPollMs),
			Heartbeat: ms(cfg.StreamHeartbeatMs), MaxAge: ms(cfg.StreamMaxAgeMs),
		}),
	}
	api := handler.New(handler.Parts{
		Sales: p.Sales, Orders: p.Orders, Stock: p.Stock, SKUs: p.SKUs, Upkeep: p.Upkeep, Health: p.Health, Doctor: p.Doctor,
		Settlements: p.Settlements, DeadLetters: p.DeadLetters, Webhooks: webhooks(cfg), Tokens: p.Tokens, Toggles: p.Toggles, AuditLog: p.AuditLog, Node: p.Node,
		Streams: s.streams, Now: p.Now, Log: p.Log,
	})
	if p.Load == nil {
		p.Load = noLoad{}
	}
	who := newClients(cfg, p.Buyers)
	s.public = s.newServer(cfg, public, l.publicCert, who, p)
	if len(cfg.CORSOrigins) > 0 {
		s.public.Use(cors(cfg.CORSOrigins))
	}
	publicRoutes(s.public, api, p.Buyers, &limits{buckets: p.Limits, winners: p.Winners, results: p.Results, load: p.Load, tokens: p.Tokens, clients: who})
	s.admin = s.newServer(cfg, admin, l.adminCert, who, p)
	s.admin.Use(sameOrigin)
	adminRoutes(s.admin, api, &guard{who: p.Operators, audit: p.Audit})
	return s
}

func webhooks(cfg Config) *handler.Webhooks {
	w, _ := handler.NewWebhooks(cfg.PaymentSecrets) // Validate has read them before
	return w
}

func newClients(cfg Config, buyers *auth.Buyers) *clients {
	// Validate has read both lists before.
	trusted, _ := prefixes("", cfg.TrustedProxies)
	exempt, _ := prefixes("", cfg.ExemptAddresses)
	return &clients{trusted: trusted, exempt: exempt, buyers: buyers}
}

func (s *Servers) newServer(cfg Config, ln net.Listener, cert *certificate, who *clients, p Parts) *server.Hertz {
	h := server.New(append(cert.options(ln, cfg, p.Log),
		// Bodies are streamed so that an oversized or badly framed one meets our middleware: what hertz reads ahead
		// it also refuses in its own words.
		server.WithStreamBody(true),
		server.WithMaxRequestBodySize(handler.MaxBody),
		server.WithDisablePreParseMultipartForm(true),
		server.WithMaxHeaderBytes(maxHeaders),
		server.WithReadTimeout(ms(cfg.ReadTimeoutMs)),
		server.WithWriteTimeout(ms(cfg.WriteTimeoutMs)),
		server.WithIdleTimeout(ms(cfg.IdleTimeoutMs)),
		server.WithExitWaitTime(ms(cfg.DrainTimeoutMs)),
		server.WithSenseClientDisconnection(true),
		server.WithOnConnect(s.connections.opened),
		// Path parameters arrive as they were sent, so that an id with an encoded slash is a bad id, not another route.
		server.WithUseRawPath(true),
		server.WithUnescapePathValues(false),
		server.WithRedirectTrailingSlash(false),
		server.WithHandleMethodNotAllowed(true),
		server.WithDisablePrintRoute(true),
	)...)
	h.Name = "stockade"
	h.SetClientIPFunc(func(c *app.RequestContext) string { return who.address(c).String() })
	access := &accessLog{log: p.Log, clients: who, now: p.Now, every: uint64(cfg.LogRefusalsEvery)}
	h.Use(s.connections.busy, recovery(p.Log), requestID, secured(cert != nil), access.middleware, framing)
	h.NoRoute(noRoute)
	h.NoMethod(noMethod(h))
	return h
}

func publicRoutes(h *server.Hertz, api *handler.API, buyers *auth.Buyers, l *limits) {
	who := &identity{buyers: buyers, count: l.count}
	h.GET("/livez", api.Livez)
	h.GET("/readyz", api.Readyz)
	h.GET("/openapi.yaml", serveOpenAPI)
	h.POST("/v1/payments", l.inHand, l.node, api.Pay)
	v1 := h.Group("/v1", l.inHand, l.entrance)
	v1.POST(purchasePath, l.shed, who.purchase, l.purchase, api.Purchase)
	v1.POST("/skus/:sku/token", who.required, l.buyer, api.IssueToken)
	v1.GET("/skus/:sku", api.GetSKU)
	v1.GET("/orders", who.required, api.ListOrders)
	v1.GET("/orders/:id", who.required, api.GetOrder)
	v1.GET("/orders/:id/events", who.required, api.OrderEvents)
	v1.POST("/orders/:id/cancel", who.required, api.CancelOrder)
}

func serveOpenAPI(_ context.Context, c *app.RequestContext) {
	c.Response.Header.SetContentType("application/yaml")
	c.Response.SetBodyRaw(openAPI)
}

func listen(setting, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", setting, addr, err)
	}
	return ln, nil
}

func validAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err
}
