package service_test

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/limiter"
)

// maxAdmissionAllocations is what the way of a purchase may allocate before the first call of a server.
const maxAdmissionAllocations = 2

// admission is the way of a purchase from the first bucket to the sold-out flag, on real parts. Gate, writer and orders
// are missing: whoever asked one of them, or the breakers before them, would crash.
type admission struct {
	limits  *limiter.Limiter
	sales   *service.Sales
	results service.Results
	addr    netip.Addr
}

// newAdmission has a SKU that is flagged as sold out.
func newAdmission(t testing.TB) *admission {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	limits := limiter.DefaultConfig()
	limits.GlobalPerSecond, limits.GlobalBurst = 1_000_000, 1_000_000
	limits.AddressPerSecond, limits.AddressBurst = 1_000_000, 1_000_000
	limits.BuyerPerSecond, limits.BuyerBurst = 1_000_000, 1_000_000
	a := &admission{addr: netip.MustParseAddr("203.0.113.9")}
	var err error
	if a.limits, err = limiter.New(limits, time.Now); err != nil {
		t.Fatal(err)
	}
	listing := sale.Listing{
		SKU:    sale.SKU{ID: "demo", State: sale.Open, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(time.Hour), Limit: 2, Slots: 32},
		Ledger: sale.Ledger{Epoch: 1, LiveEpoch: 1, Mode: sale.ModeRedis, Total: 100, Promised: 100},
	}
	caches := cache.DefaultConfig()
	// The clock of the memory stands still, so that nothing in it grows old under a long benchmark.
	stands := time.Now()
	still := func() time.Time { return stands }
	listings, err := cache.NewCatalogue(caches, func(context.Context, string) (sale.Listing, error) { return listing, nil }, still)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listings.Close)
	flags, err := cache.NewFlags(caches, still)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range sale.Shares(listing.Slots) {
		flags.Note("demo", sale.Figures{Share: share, Epoch: 1, Changes: 1})
		flags.Winners("demo", sale.Winners{Share: share, Epoch: 1, Changes: 1, Hashes: []uint64{1, 2, 3}})
	}
	toggles := service.NewToggles(service.ToggleParts{Store: &switches{}, Hints: noHints{}, Now: time.Now, Log: log})
	watcher := service.NewWatcher(service.DefaultConfig(), service.WatcherParts{Flags: flags, Catalogue: listings, Log: log})
	a.sales = service.NewSales(service.DefaultConfig(), service.SalesParts{
		Catalogue: listings, Flags: flags, Watcher: watcher, Toggles: toggles, Results: &a.results, Now: time.Now, Log: log,
	})
	for deadline := time.Now().Add(10 * time.Second); ; { // what was read is remembered a little later
		if _, err := listings.Listing(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if _, known := listings.Remembered("demo"); known {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatal("the listing is not remembered")
		}
		runtime.Gosched()
	}
}

// pass takes one request all the way and tells what became of it.
func (a *admission) pass(ctx context.Context, req service.PurchaseRequest) (sale.Code, error) {
	if !a.limits.Global().OK || !a.limits.Address(a.addr).OK || !a.limits.Buyer(req.Buyer).OK {
		return sale.RateLimited, nil
	}
	r, err := a.sales.Purchase(ctx, req)
	return r.Code, err
}

// admissionRequests are the kinds of requests of which a sale has very many.
var admissionRequests = map[string]service.PurchaseRequest{
	"without key": {SKU: "demo", Buyer: "buyer-0000000001", Quantity: 1},
	"with key":    {SKU: "demo", Buyer: "buyer-0000000001", Key: "key-0000000001", Quantity: 1},
}

func TestAdmissionAllocatesLittle(t *testing.T) {
	a := newAdmission(t)
	for name, req := range admissionRequests {
		if code, err := a.pass(t.Context(), req); code != sale.SoldOut || err != nil {
			t.Fatalf("%s: %s, %v, want SOLD_OUT from memory", name, code, err)
		}
		if n := testing.AllocsPerRun(1000, func() { _, _ = a.pass(t.Context(), req) }); n > maxAdmissionAllocations {
			t.Errorf("%s: %v allocations, want at most %d", name, n, maxAdmissionAllocations)
		}
	}
}

func BenchmarkAdmission(b *testing.B) {
	for name, req := range admissionRequests {
		b.Run(name, func(b *testing.B) {
			a := newAdmission(b)
			b.ReportAllocs()
			for b.Loop() {
				if code, err := a.pass(b.Context(), req); err != nil || (code != sale.SoldOut && code != sale.RateLimited) {
					b.Fatal(code, err)
				}
			}
			if n := a.results.Counts(); n["SOLD_OUT"] == 0 {
				b.Fatalf("nobody reached the flag: %v", n)
			}
		})
	}
}
