package router

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/auth"
	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// shop fakes every use case: it answers what a test sets, and counts the calls.
type shop struct {
	calls atomic.Int64
	gone  atomic.Int64  // purchases whose client hung up while they waited
	hold  chan struct{} // purchases wait until it closes

	mu      sync.Mutex
	bought  []service.PurchaseRequest
	result  sale.Result
	noToken sale.Result // why no purchase tokens are issued; zero: they are
	err     error
	panics  bool
	orders  map[sale.OrderID]sale.Order
	listing sale.Listing
	left    int64
	fresh   bool
	skuErr  error
	total   int64 // of the last Create
	sku     sale.SKU
	add     int64 // of the last Adjust
	moves   []string
	ready   handler.Readiness
}

func (s *shop) Purchase(ctx context.Context, req service.PurchaseRequest) (sale.Result, error) {
	s.calls.Add(1)
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			s.gone.Add(1)
			return sale.Result{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("boom")
	}
	s.bought = append(s.bought, req)
	return s.result, s.err
}

func (s *shop) MayIssueToken(_ context.Context, sku string) (sale.Result, bool, error) {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sku != s.listing.ID {
		return sale.Result{}, false, sale.ErrNotFound
	}
	return s.noToken, s.noToken == (sale.Result{}), s.err
}

func (s *shop) Order(_ context.Context, buyer string, id sale.OrderID) (sale.Order, error) {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[id]
	if !ok || o.Buyer != buyer {
		return sale.Order{}, sale.ErrNotFound
	}
	return o, s.err
}

func (s *shop) OrderOf(ctx context.Context, sku, buyer string, id sale.OrderID) (sale.Order, error) {
	o, err := s.Order(ctx, buyer, id)
	if err == nil && o.SKU != sku {
		err = sale.ErrNotFound
	}
	return o, err
}

func (s *shop) OrdersOf(_ context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error) {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sale.Order
	for i := byte(1); len(out) < limit; i++ {
		o, ok := s.orders[sale.OrderID{15: i}]
		if !ok {
			break
		}
		if o.Buyer == buyer && bytes.Compare(o.ID[:], after[:]) > 0 {
			out = append(out, o)
		}
	}
	return out, s.err
}

func (s *shop) Stock(_ context.Context, sku string) (service.StockView, error) {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sku != s.listing.ID {
		return service.StockView{}, sale.ErrNotFound
	}
	return service.StockView{Listing: s.listing, Left: s.left, Fresh: s.fresh}, s.err
}

func (s *shop) use(move, sku string) (sale.Listing, error) {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = append(s.moves, move)
	if s.skuErr != nil {
		return sale.Listing{}, s.skuErr
	}
	if sku != s.listing.ID {
		return sale.Listing{}, sale.ErrNotFound
	}
	return s.listing, nil
}

func (s *shop) Create(_ context.Context, sku sale.SKU, total int64) (sale.Listing, error) {
	s.mu.Lock()
	s.sku, s.total = sku, total
	s.mu.Unlock()
	_, err := s.use("create", sku.ID)
	return sale.Listing{SKU: sku, Ledger: sale.Ledger{Total: total, Mode: sale.ModeRedis, State: sale.Steady}}, err
}

func (s *shop) Load(_ context.Context, sku string) (sale.Listing, error) { return s.use("load", sku) }

func (s *shop) Open(_ context.Context, sku string) (sale.Listing, error) { return s.use("open", sku) }

func (s *shop) Pause(_ context.Context, sku string) (sale.Listing, error) { return s.use("pause", sku) }

func (s *shop) Close(_ context.Context, sku string) (sale.Listing, error) { return s.use("close", sku) }

func (s *shop) Get(_ context.Context, sku string) (sale.Listing, error) { return s.use("get", sku) }

func (s *shop) Adjust(_ context.Context, sku string, add int64) (sale.Listing, error) {
	s.mu.Lock()
	s.add = add
	s.mu.Unlock()
	return s.use("adjust", sku)
}

func (s *shop) List(_ context.Context, after string, limit int) ([]sale.Listing, error) {
	l, err := s.use("list", "demo")
	if err != nil || after >= l.ID {
		return nil, err
	}
	return []sale.Listing{l}[:min(limit, 1)], nil
}

func (s *shop) Shares(_ context.Context, sku string) ([]sale.Figures, error) {
	_, err := s.use("shares", sku)
	return []sale.Figures{{Share: 0, Epoch: 1, Left: 7, Initial: 9, Changes: 2}, {Share: sale.Reserve, Gone: true}}, err
}

func (s *shop) Books(_ context.Context, sku string) (sale.Books, error) {
	_, err := s.use("books", sku)
	return sale.Books{Total: 100, Promised: 2, LiveUnits: 2, LiveOrders: 1, Orders: 1, Unpaid: 1}, err
}

func (s *shop) Readiness() handler.Readiness {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// set changes the fake under its lock.
func (s *shop) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// buckets fakes the limits: it says no where a test tells it to, and records its keys.
type buckets struct {
	mu                         sync.Mutex
	noGlobal, noAddr, noBuyers bool
	globals                    int
	addresses                  []netip.Addr
	buyers                     []string
	won                        sale.OrderID
}

func (b *buckets) verdict(no bool) Verdict {
	if no {
		return Verdict{Limit: 5, Reset: 900 * time.Millisecond, RetryAfter: 2500 * time.Millisecond}
	}
	return Verdict{OK: true, Limit: 5, Remaining: 4, Reset: 200 * time.Millisecond}
}

func (b *buckets) Global() Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.globals++
	return b.verdict(b.noGlobal)
}

func (b *buckets) Address(a netip.Addr) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses = append(b.addresses, a)
	return b.verdict(b.noAddr)
}

func (b *buckets) Buyer(id string) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buyers = append(b.buyers, id)
	return b.verdict(b.noBuyers)
}

// set changes or reads the fake under its lock.
func (b *buckets) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Has makes the buckets a Winners too.
func (b *buckets) Has(id sale.OrderID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.won == id
}

// logBook keeps what was logged.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines returns the logged lines that contain s.
func (l *logBook) lines(s string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range strings.Split(l.buf.String(), "\n") {
		if strings.Contains(line, s) {
			out = append(out, line)
		}
	}
	return out
}

// gauge fakes the figures of a node, but for the results, which are counted.
type gauge struct{ results *service.Results }

func (g gauge) Figures() handler.NodeJSON {
	return handler.NodeJSON{
		Node: "n1", Results: g.results.Counts(), InFlight: 3,
		Breakers:    []handler.BreakerJSON{{Name: "outbox", State: "open", Forced: "auto", Changes: 1, Since: testNow}},
		TogglesFile: service.ToggleNews{Path: "/etc/toggles.yaml", State: service.ToggleFileRead, Toggles: 1, ChangedAt: testNow},
	}
}

// node is a pair of listening servers over fakes.
type node struct {
	*Servers
	shop    *shop
	desk    *desk
	levers  *levers
	ledger  *auditBook
	buckets *buckets
	scales  *scales
	results service.Results
	log     *logBook
}

func demoListing() sale.Listing {
	return sale.Listing{
		SKU: sale.SKU{
			ID: "demo", State: sale.Open, OpensAt: testNow.Add(-time.Hour), Limit: 2,
			PaymentWindow: 15 * time.Minute, Slots: 32, ReservePct: 5,
		},
		Ledger: sale.Ledger{
			Epoch: 1, LiveEpoch: 1, LaidEpoch: 1, Mode: sale.ModeRedis, State: sale.Steady, Total: 100, Promised: 2,
		},
	}
}

// startNode starts one that believes the X-Buyer-Id of this machine.
func startNode(t testing.TB, change func(*Config)) *node {
	t.Helper()
	return startNodeFor(t, buyersOf(t, auth.DefaultConfig()), change)
}

func buyersOf(t testing.TB, cfg auth.Config) *auth.Buyers {
	t.Helper()
	b, err := auth.NewBuyers(cfg, auth.BuyerParts{Now: func() time.Time { return testNow }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func startNodeFor(t testing.TB, buyers *auth.Buyers, change func(*Config)) *node {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	if change != nil {
		change(&cfg)
	}
	n := &node{
		shop: &shop{listing: demoListing(), orders: map[sale.OrderID]sale.Order{}, ready: handler.Readiness{Ready: true}},
		desk: &desk{}, levers: &levers{}, ledger: &auditBook{}, buckets: &buckets{}, scales: &scales{}, log: &logBook{},
	}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	n.Servers, err = open(cfg, Parts{
		Sales: n.shop, Orders: n.shop, Stock: n.shop, SKUs: n.shop, Upkeep: n.shop, Health: n.shop, Doctor: ward{},
		Settlements: n.desk, DeadLetters: n.desk, Toggles: n.levers, Results: &n.results, Node: gauge{&n.results}, Operators: staff{}, Audit: n.ledger, AuditLog: n.ledger, Tokens: testTokens(newTokenSecret), Buyers: buyers,
		Limits: n.buckets, Load: n.scales, Winners: n.buckets, Now: func() time.Time { return testNow }, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- n.Run() }()
	if cfg.TLSCertFile == "" {
		n.awaitUp(t)
	}
	t.Cleanup(func() {
		if err := n.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return n
}

func (s *shop) Reshare(_ context.Context, sku string, full bool) (sale.Listing, error) {
	return s.use(fmt.Sprint("reshare ", full), sku)
}

func (s *shop) Slots(_ context.Context, sku string, slots int) (sale.Listing, error) {
	return s.use(fmt.Sprint("slots ", slots), sku)
}

func (s *shop) Path(_ context.Context, sku string, mode sale.Mode) (sale.Listing, error) {
	return s.use("path "+string(mode), sku)
}

func (s *shop) Audit(_ context.Context, sku string) (service.Audit, error) {
	l, err := s.use("audit", sku)
	return service.Audit{SKU: l.ID, Gate: &service.GateCheck{Drift: 1}}, err
}

func (s *shop) Reconcile(_ context.Context, sku string, fix bool) (service.Reconciliation, error) {
	l, err := s.use(fmt.Sprint("reconcile ", fix), sku)
	return service.Reconciliation{
		SKU: l.ID, Fix: fix, Kinds: map[sale.DiscrepancyKind]int64{sale.OrderMissing: 1},
		Orders: []sale.Discrepancy{{Kind: sale.OrderMissing, Order: someID, Correction: "x", Outbox: "DONE", Row: sale.OrderPaid}},
	}, err
}

func (s *shop) CloseOut(_ context.Context, sku string) (service.CloseoutReport, error) {
	l, err := s.use("close out", sku)
	return service.CloseoutReport{SKU: l.ID}, err
}

func (s *shop) CloseoutReport(_ context.Context, sku string) (service.CloseoutReport, error) {
	l, err := s.use("report", sku)
	return service.CloseoutReport{SKU: l.ID}, err
}
