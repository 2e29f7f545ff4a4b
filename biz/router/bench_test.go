package router

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/route"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

// stub answers at once and keeps nothing.
type stub struct{ shop }

func (*stub) Purchase(context.Context, service.PurchaseRequest) (sale.Result, error) {
	return sale.Result{Code: sale.SoldOut}, nil
}
func (*stub) Global() Verdict            { return Verdict{OK: true} }
func (*stub) Address(netip.Addr) Verdict { return Verdict{OK: true} }
func (*stub) Buyer(string) Verdict       { return Verdict{OK: true, Limit: 5, Remaining: 4} }
func (*stub) Has(sale.OrderID) bool      { return false }

// refusedPurchase returns a function that sends one purchase through routes, middleware and handler to SOLD_OUT, and
// the engine it runs on.
func refusedPurchase(tb testing.TB) (*route.Engine, func() *app.RequestContext) {
	tb.Helper()
	cfg := DefaultConfig()
	cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s := &stub{}
	known := auth.DefaultConfig()
	known.Gateways = []string{"0.0.0.0/32"} // who a request without a connection is from
	servers, err := open(cfg, Parts{
		Sales: s, Orders: s, Stock: s, SKUs: s, Health: s, Limits: s, Winners: s, Buyers: buyersOf(tb, known),
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = servers.public.Close()
		_ = servers.admin.Close()
	})
	engine := servers.public.Engine
	if err := engine.Init(); err != nil {
		tb.Fatal(err)
	}
	c := engine.NewContext()
	body := []byte(`{"quantity":1}`)
	return engine, func() *app.RequestContext {
		c.ResetWithoutConn()
		c.Request.Header.SetMethod("POST")
		c.Request.Header.SetRequestURI("/v1/skus/demo/orders")
		c.Request.Header.SetHost("x")
		c.Request.Header.SetContentTypeBytes([]byte("application/json"))
		c.Request.Header.Set("X-Buyer-Id", "buyer-0000000001")
		c.Request.Header.Set("Idempotency-Key", "key-0000000001")
		c.Request.SetBodyRaw(body)
		return c
	}
}

// maxRefusedAllocations is what a refused purchase may allocate between hertz and the service: in a sale nearly every
// request is one.
const maxRefusedAllocations = 8

func TestARefusedPurchaseAllocatesLittle(t *testing.T) {
	engine, prepare := refusedPurchase(t)
	ctx := context.Background()
	engine.ServeHTTP(ctx, prepare())
	c := prepare()
	if engine.ServeHTTP(ctx, c); c.Response.StatusCode() != 409 {
		t.Fatalf("got %d %s", c.Response.StatusCode(), c.Response.Body())
	}
	alone := testing.AllocsPerRun(500, func() { prepare() })
	whole := testing.AllocsPerRun(500, func() { engine.ServeHTTP(ctx, prepare()) })
	const hertz = 2 // copies of the path
	if ours := whole - alone - hertz; ours > maxRefusedAllocations+poolSlack {
		t.Errorf("a refused purchase allocates %v times in our code, at most %d are allowed", ours, maxRefusedAllocations)
	}
}

func BenchmarkRefusedPurchase(b *testing.B) {
	engine, prepare := refusedPurchase(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		engine.ServeHTTP(ctx, prepare())
	}
}

func BenchmarkClientAddress(b *testing.B) {
	k := &clients{trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
	c := app.NewContext(0)
	c.Request.Header.Set("X-Forwarded-For", "203.0.113.9, 10.1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		k.bucketKey(c)
	}
}

var _ handler.Sales = (*stub)(nil)
