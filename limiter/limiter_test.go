package limiter_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/limiter"
)

// clock is a clock that stands still until it is told to move.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, 0).Add(time.Duration(c.ns.Load())) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func newLimiter(t rapid.TB, cfg limiter.Config) (*limiter.Limiter, *clock) {
	t.Helper()
	c := &clock{}
	l, err := limiter.New(ratesOf(cfg), c.now)
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// ratesOf is the default configuration with the buckets of cfg.
func ratesOf(cfg limiter.Config) limiter.Config {
	full := limiter.DefaultConfig()
	full.GlobalPerSecond, full.GlobalBurst = cfg.GlobalPerSecond, cfg.GlobalBurst
	full.AddressPerSecond, full.AddressBurst = cfg.AddressPerSecond, cfg.AddressBurst
	full.BuyerPerSecond, full.BuyerBurst = cfg.BuyerPerSecond, cfg.BuyerBurst
	full.MaxAddresses, full.MaxBuyers = cfg.MaxAddresses, cfg.MaxBuyers
	return full
}

// buyersOnly is a configuration whose buyer table has a single group when maxBuyers is 1: 15 buckets.
func buyersOnly(perSecond, burst, maxBuyers int) limiter.Config {
	return limiter.Config{BuyerPerSecond: perSecond, BuyerBurst: burst, MaxAddresses: 1, MaxBuyers: maxBuyers}
}

const singleGroup = 15

// exact is the naive model: an unbounded map of token counts, in tokens and not in arrival times. Its units are
// token × nanoseconds × rate, so that all its figures are whole numbers for rates that divide a second.
type exact struct {
	interval, depth int64
	level           map[string]int64 // nanoseconds' worth of tokens
	at              map[string]int64
}

func newExact(perSecond, burst int) *exact {
	interval := int64(time.Second) / int64(perSecond)
	return &exact{interval, interval * int64(burst), map[string]int64{}, map[string]int64{}}
}

func (e *exact) fill(id string, now int64) int64 {
	level, known := e.level[id]
	if !known {
		return e.depth
	}
	return min(e.depth, level+now-e.at[id])
}

func (e *exact) verdict(id string, now int64) limiter.Verdict {
	v := limiter.Verdict{Limit: int(e.depth / e.interval)}
	level := e.fill(id, now)
	if v.OK = level >= e.interval; v.OK {
		level -= e.interval
		v.Remaining = int(level / e.interval)
	} else {
		v.RetryAfter = time.Duration(e.interval - level)
	}
	v.Reset = time.Duration(e.depth - level)
	return v
}

func (e *exact) spend(id string, now int64) {
	e.level[id], e.at[id] = e.fill(id, now)-e.interval, now
}

var wholeRates = []int{1, 2, 4, 5, 8, 10, 100, 1000}

// While every key has its bucket, the limiter and the naive model agree in every figure.
func TestEqualsExactWhileNothingIsEvicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.SampledFrom(wholeRates).Draw(t, "perSecond")
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		l, c := newLimiter(t, buyersOnly(perSecond, burst, 1))
		model := newExact(perSecond, burst)
		id := rapid.IntRange(1, singleGroup)
		pause := rapid.Int64Range(0, 2*int64(time.Second)/int64(perSecond))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "moves") {
				c.advance(time.Duration(pause.Draw(t, "pause")))
			}
			buyer, now := fmt.Sprint(id.Draw(t, "buyer")), c.ns.Load()
			want, got := model.verdict(buyer, now), l.Buyer(buyer)
			if got != want {
				t.Fatalf("buyer %s at %d: got %+v, want %+v", buyer, now, got, want)
			}
			if got.OK {
				model.spend(buyer, now)
			}
		}
	})
}

// With more buyers than buckets, whatever the limiter admits the exact map would have admitted, too.
func TestEvictionIsNeverMorePermissive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.SampledFrom(wholeRates).Draw(t, "perSecond")
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		l, c := newLimiter(t, buyersOnly(perSecond, burst, rapid.SampledFrom([]int{1, 8, 23}).Draw(t, "maxBuyers")))
		model := newExact(perSecond, burst)
		id := rapid.IntRange(1, 200)
		pause := rapid.Int64Range(0, int64(time.Second)/int64(perSecond))
		for range rapid.IntRange(1, 600).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "moves") == 0 {
				c.advance(time.Duration(pause.Draw(t, "pause")))
			}
			buyer, now := fmt.Sprint(id.Draw(t, "buyer")), c.ns.Load()
			want, got := model.verdict(buyer, now), l.Buyer(buyer)
			if !got.OK {
				if got.RetryAfter <= 0 {
					t.Fatalf("refused without a time to come back: %+v", got)
				}
				continue
			}
			if !want.OK {
				t.Fatalf("buyer %s at %d was admitted with %+v, the exact bucket says %+v", buyer, now, got, want)
			}
			if got.Remaining > want.Remaining || got.Reset < want.Reset {
				t.Fatalf("buyer %s at %d has a fuller bucket than time would give: %+v, exact %+v", buyer, now, got, want)
			}
			model.spend(buyer, now)
		}
	})
}

// A table that was filled to the brim serves newcomers like new again once the old buckets would be full.
func TestFloorPasses(t *testing.T) {
	const burst = 3
	l, c := newLimiter(t, buyersOnly(1, burst, 1))
	for i := range 50 * singleGroup {
		l.Buyer(fmt.Sprint("crowd-", i))
	}
	if v := l.Buyer("newcomer"); v.OK {
		t.Fatalf("a newcomer may be one of the evicted, who have nothing left; got %+v", v)
	}
	c.advance(burst * time.Second)
	for i := range burst {
		if v := l.Buyer("newcomer"); !v.OK || v.Remaining != burst-1-i {
			t.Fatalf("request %d after all buckets are full again: %+v", i, v)
		}
	}
}

func TestRetryAfterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 1_000_000).Draw(t, "perSecond")
		burst := rapid.IntRange(1, 50).Draw(t, "burst")
		l, c := newLimiter(t, buyersOnly(perSecond, burst, 1))
		c.advance(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "uptime")))
		for i := range burst {
			if v := l.Buyer("b"); !v.OK || v.Remaining != burst-1-i {
				t.Fatalf("request %d of a burst of %d: %+v", i, burst, v)
			}
		}
		v := l.Buyer("b")
		if v.OK || v.RetryAfter <= 0 {
			t.Fatalf("request beyond the burst: %+v", v)
		}
		c.advance(v.RetryAfter - 1)
		if early := l.Buyer("b"); early.OK || early.RetryAfter != 1 {
			t.Fatalf("one nanosecond early: %+v", early)
		}
		c.advance(1)
		if late := l.Buyer("b"); !late.OK {
			t.Fatalf("at the promised time: %+v", late)
		}
	})
}

// Over any stretch of time a bucket admits what flowed in and what was there, and not one more.
func TestRateIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 1_000_000).Draw(t, "perSecond")
		burst := rapid.IntRange(1, 1000).Draw(t, "burst")
		l, c := newLimiter(t, buyersOnly(perSecond, burst, 1))
		admitted := 0
		for range 5000 {
			if v := l.Buyer("b"); v.OK {
				admitted++
			} else {
				c.advance(v.RetryAfter)
			}
		}
		passed := c.ns.Load()
		if most := burst + int(passed*int64(perSecond)/int64(time.Second)); admitted > most {
			t.Fatalf("%d admitted in %d ns at %d per second and a burst of %d, at most %d", admitted, passed, perSecond, burst, most)
		}
		least := burst + int(float64(passed)/float64(time.Second)*float64(perSecond)*0.998)
		if admitted < least-1 {
			t.Fatalf("%d admitted in %d ns at %d per second and a burst of %d, at least %d", admitted, passed, perSecond, burst, least)
		}
	})
}

func TestBucketsAreApart(t *testing.T) {
	l, _ := newLimiter(t, limiter.Config{
		GlobalPerSecond: 1, GlobalBurst: 3, AddressPerSecond: 1, AddressBurst: 1, BuyerPerSecond: 1, BuyerBurst: 1,
		MaxAddresses: 100, MaxBuyers: 100,
	})
	addr := netip.MustParseAddr("192.0.2.7")
	for i, ask := range []struct {
		name string
		v    limiter.Verdict
		ok   bool
	}{
		{"first buyer", l.Buyer("192.0.2.7"), true},
		{"same buyer", l.Buyer("192.0.2.7"), false},
		{"other buyer", l.Buyer("192.0.2.8"), true},
		{"address", l.Address(addr), true},
		{"same address", l.Address(addr), false},
		{"other address", l.Address(addr.Next()), true},
		{"global 1", l.Global(), true},
		{"global 2", l.Global(), true},
		{"global 3", l.Global(), true},
		{"global 4", l.Global(), false},
	} {
		if ask.v.OK != ask.ok {
			t.Errorf("%d %s: got %+v, want ok %v", i, ask.name, ask.v, ask.ok)
		}
	}
}

// One client must not get fresh buckets by writing its address in another way or by walking through its own network.
func TestAddressesOfOneOwner(t *testing.T) {
	for _, tc := range []struct {
		first, second string
		same          bool
	}{
		{"192.0.2.7", "::ffff:192.0.2.7", true},
		{"192.0.2.7", "192.0.2.8", false},
		{"::ffff:192.0.2.7", "::ffff:192.0.2.8", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		l, _ := newLimiter(t, limiter.Config{AddressPerSecond: 1, AddressBurst: 1, MaxAddresses: 100, MaxBuyers: 1})
		if v := l.Address(netip.MustParseAddr(tc.first)); !v.OK {
			t.Errorf("%s: first request refused: %+v", tc.first, v)
		}
		if v := l.Address(netip.MustParseAddr(tc.second)); v.OK == tc.same {
			t.Errorf("%s then %s: got %+v, same bucket should be %v", tc.first, tc.second, v, tc.same)
		}
	}
	l, _ := newLimiter(t, limiter.Config{AddressPerSecond: 1, AddressBurst: 1, MaxAddresses: 100, MaxBuyers: 1})
	if first, second := l.Address(netip.Addr{}), l.Address(netip.Addr{}); !first.OK || second.OK {
		t.Errorf("invalid addresses share a bucket: got %+v, %+v", first, second)
	}
}

func TestRateZeroIsOff(t *testing.T) {
	l, _ := newLimiter(t, limiter.Config{MaxAddresses: 1, MaxBuyers: 1})
	want := limiter.Verdict{OK: true}
	for range 1000 {
		for _, v := range []limiter.Verdict{l.Global(), l.Address(netip.IPv6Loopback()), l.Buyer("b")} {
			if v != want {
				t.Fatalf("got %+v, want %+v", v, want)
			}
		}
	}
}

// Many goroutines together get exactly the burst while the clock stands still.
func TestConcurrentRequestsShareTheBurst(t *testing.T) {
	const workers, each, burst = 8, 500, 100
	l, _ := newLimiter(t, limiter.Config{
		GlobalPerSecond: 1, GlobalBurst: burst, AddressPerSecond: 1, AddressBurst: burst,
		BuyerPerSecond: 1, BuyerBurst: burst, MaxAddresses: 1, MaxBuyers: 1,
	})
	var global, address, buyer atomic.Int64
	count := func(n *atomic.Int64, v limiter.Verdict) {
		if v.OK {
			n.Add(1)
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				count(&global, l.Global())
				count(&address, l.Address(netip.IPv6Loopback()))
				count(&buyer, l.Buyer("b"))
			}
		})
	}
	wg.Wait()
	if g, a, b := global.Load(), address.Load(), buyer.Load(); g != burst || a != burst || b != burst {
		t.Fatalf("admitted global %d, address %d, buyer %d; each burst is %d", g, a, b, burst)
	}
}

func TestNothingAllocates(t *testing.T) {
	l, _ := newLimiter(t, limiter.DefaultConfig())
	addr, buyer := netip.MustParseAddr("192.0.2.7"), "buyer-1"
	if n := testing.AllocsPerRun(1000, func() { // the first 5 are admitted, the others refused
		l.Global()
		l.Address(addr)
		l.Buyer(buyer)
	}); n != 0 {
		t.Fatalf("%v allocations per request", n)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := limiter.DefaultConfig().Validate(); err != nil {
		t.Fatalf("the default configuration is refused: %v", err)
	}
	for field, broken := range map[string]func(*limiter.Config){
		"globalPerSecond":  func(c *limiter.Config) { c.GlobalPerSecond = -1 },
		"globalBurst":      func(c *limiter.Config) { c.GlobalBurst = 0 },
		"addressPerSecond": func(c *limiter.Config) { c.AddressPerSecond = 1_000_001 },
		"addressBurst":     func(c *limiter.Config) { c.AddressBurst = -5 },
		"buyerPerSecond":   func(c *limiter.Config) { c.BuyerPerSecond = -5 },
		"buyerBurst":       func(c *limiter.Config) { c.BuyerBurst = 1_000_001 },
		"maxAddresses":     func(c *limiter.Config) { c.MaxAddresses = 0 },
		"maxBuyers":        func(c *limiter.Config) { c.MaxBuyers = 1<<24 + 1 },

		"lanes.slowMs":        func(c *limiter.Config) { c.Lanes.SlowMs = 0 },
		"outbox.errorPercent": func(c *limiter.Config) { c.Outbox.ErrorPercent = 101 },
		"publish.windowMs":    func(c *limiter.Config) { c.Publish.WindowMs = 1001 },
		"backlogMaxEvents":    func(c *limiter.Config) { c.BacklogMaxEvents = 9 },
		"maxInFlight":         func(c *limiter.Config) { c.MaxInFlight = 0 },
		"adaptiveCPUPercent":  func(c *limiter.Config) { c.AdaptiveCPUPercent = 101 },
		"adaptiveInFlight":    func(c *limiter.Config) { c.AdaptiveInFlight = -1 },
	} {
		cfg := limiter.DefaultConfig()
		broken(&cfg)
		var bad *sale.InputError
		if err := cfg.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
		if _, err := limiter.New(cfg, time.Now); err == nil {
			t.Errorf("%s: New accepted it", field)
		}
	}
	if n := reflect.TypeFor[limiter.Config]().NumField(); n != 16 { // BreakersFile may be anything
		t.Errorf("Config has %d fields, this test breaks 15", n)
	}
}
