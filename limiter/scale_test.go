package limiter_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/limiter"
)

func TestScaleOfRates(t *testing.T) {
	cfg := limiter.Config{
		GlobalPerSecond: 1000, GlobalBurst: 1000, AddressPerSecond: 100, AddressBurst: 100, BuyerPerSecond: 10, BuyerBurst: 10,
		MaxAddresses: 100, MaxBuyers: 100,
	}
	for _, tc := range []struct{ percent, global, address, buyer int }{
		{0, 0, 0, 0}, {1, 10, 1, 1}, {50, 500, 50, 5}, {100, 1000, 100, 10}, {-5, 0, 0, 0}, {400, 1000, 100, 10},
	} {
		l, c := newLimiter(t, cfg)
		l.SetScale(tc.percent)
		addr := netip.MustParseAddr("192.0.2.1")
		for name, b := range map[string]struct {
			take func() limiter.Verdict
			want int
		}{
			"global":  {l.Global, tc.global},
			"address": {func() limiter.Verdict { return l.Address(addr) }, tc.address},
			"buyer":   {func() limiter.Verdict { return l.Buyer("b") }, tc.buyer},
		} {
			burst := 0
			for b.take().OK {
				burst++
			}
			if burst != b.want {
				t.Errorf("%s at %d %%: a burst of %d, want %d", name, tc.percent, burst, b.want)
			}
			if v := b.take(); v.OK || v.RetryAfter <= 0 {
				t.Errorf("%s at %d %%: %+v", name, tc.percent, v)
			}
		}
		c.advance(10 * time.Second)
		l.SetScale(100)
		if !l.Global().OK || !l.Address(addr).OK || !l.Buyer("b").OK {
			t.Errorf("back from %d %%: refused", tc.percent)
		}
	}
}

func TestScaleZeroRefusesWhatIsOff(t *testing.T) {
	l, _ := newLimiter(t, limiter.Config{MaxAddresses: 1, MaxBuyers: 1})
	l.SetScale(0)
	if v := l.Global(); v.OK || v.RetryAfter <= 0 {
		t.Errorf("%+v", v)
	}
	l.SetScale(50)
	if !l.Global().OK {
		t.Error("half of no limit is a limit")
	}
}

// However the scale moves, no stretch of time lets more through than the full rate, and at a steady scale the rate holds.
func TestScaleNeverLetsMoreThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.SampledFrom(wholeRates).Draw(t, "perSecond")
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		l, c := newLimiter(t, buyersOnly(perSecond, burst, 1))
		model := newExact(perSecond, burst)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "scales") == 0 {
				l.SetScale(rapid.SampledFrom([]int{0, 1, 10, 33, 50, 99, 100}).Draw(t, "percent"))
			}
			if rapid.Bool().Draw(t, "moves") {
				c.advance(time.Duration(rapid.Int64Range(0, int64(2*time.Second)/int64(perSecond)).Draw(t, "pause")))
			}
			now := c.ns.Load()
			want := model.verdict("b", now)
			if l.Buyer("b").OK {
				if !want.OK {
					t.Fatalf("admitted at %d: the full rate would not", now)
				}
				model.spend("b", now)
			}
		}
	})
}
