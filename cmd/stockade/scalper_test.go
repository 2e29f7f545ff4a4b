package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
)

const (
	clicks   = 1000
	scalpers = 16 // connections
)

// drill sends clicks purchases, each with the header that it is given, and counts the answers by code. took is how long
// buckets could fill up meanwhile.
func (x *target) drill(t *testing.T, header func(i int) []string) (counts map[string]int, took time.Duration) {
	t.Helper()
	counts = map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	var next atomic.Int64
	begun := time.Now()
	for range scalpers {
		all.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= clicks {
					return
				}
				got := x.try(t, "POST", x.purchases(), one, header(i)...)
				code := codeOf(got)
				if got.status == http.StatusTooManyRequests && (code != sale.RateLimited.String() || got.header.Get("Retry-After") == "") {
					t.Errorf("%s: %v", got, got.header)
				}
				mu.Lock()
				counts[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return counts, time.Since(begun)
}

func codeOf(a heard) string {
	_, rest, _ := strings.Cut(a.body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

// most is what a bucket lets through at most: what it holds and what flows in.
func most(burst, perSecond int, took time.Duration) int {
	return burst + int(float64(perSecond)*took.Seconds()) + 1
}

// forwarded is what the trusted gateway in front says of a client.
func forwarded(i int) string {
	return fmt.Sprintf("X-Forwarded-For: 203.0.%d.%d", 113+i/250, 1+i%250)
}

// A buyer with a thousand addresses has one bucket and one limit.
func TestScalperWithManyAddresses(t *testing.T) {
	const burst, perSecond = 5, 5
	x := startTarget(t, "router.trustedProxies=127.0.0.0/8")
	counts, took := x.drill(t, func(i int) []string {
		return []string{"X-Buyer-Id: scalper", forwarded(i)}
	})
	limited := counts[sale.RateLimited.String()]
	if passed := clicks - limited; passed > most(burst, perSecond, took) || limited == 0 {
		t.Errorf("%v: %d of %d clicks passed in %v, at most %d may", counts, passed, clicks, took, most(burst, perSecond, took))
	}
	if counts[sale.Accepted.String()] != sale.DefaultLimit {
		t.Errorf("%v: the limit of the SKU is %d", counts, sale.DefaultLimit)
	}
	// Patience does not help either. RETRY is the answer while the first orders are undecided.
	eventually(t, "the limit", func() bool {
		got := x.try(t, "POST", x.purchases(), one, "X-Buyer-Id: scalper", forwarded(999))
		if got.status == http.StatusAccepted {
			t.Fatalf("over the limit: %s", got)
		}
		return codeOf(got) == sale.LimitReached.String()
	})
	if got := x.stock(t, demoSKU); got.Promised != sale.DefaultLimit || got.Promised+got.Left != demoUnits {
		t.Errorf("the scalper has %+v", got)
	}
	// Nobody else pays for it, from an address that the scalper used, either.
	if got := x.try(t, "POST", x.purchases(), one, "X-Buyer-Id: ada", forwarded(0)); got.status != http.StatusAccepted {
		t.Errorf("ada: %s", got)
	}
}

// An address with a thousand buyers has one bucket, whatever it says of addresses behind it.
func TestScalperWithManyBuyers(t *testing.T) {
	const burst, perSecond = 100, 5
	x := startTarget(t, "router.trustedProxies=127.0.0.0/8", fmt.Sprintf("limiter.addressPerSecond=%d", perSecond))
	counts, took := x.drill(t, func(i int) []string {
		return []string{
			fmt.Sprintf("X-Buyer-Id: scalper-%d", i), fmt.Sprintf("X-Forwarded-For: 10.0.%d.%d, 198.51.100.7", i/250, 1+i%250),
		}
	})
	accepted, limited := counts[sale.Accepted.String()], counts[sale.RateLimited.String()]
	unknown := clicks - accepted - limited // BUSY, when the machine is
	if passed := clicks - limited; passed > most(burst, perSecond, took) || limited == 0 {
		t.Errorf("%v: %d of %d clicks passed in %v, at most %d may", counts, passed, clicks, took, most(burst, perSecond, took))
	}
	if got := x.stock(t, demoSKU); accepted == 0 || got.Promised < int64(accepted) || got.Promised > int64(accepted+unknown) || got.Left < demoUnits-int64(accepted+unknown) {
		t.Errorf("%v: the scalper has %+v", counts, got)
	}
	if got := x.results(t); got[sale.RateLimited.String()] != int64(limited) || got[sale.Accepted.String()] != int64(accepted) {
		t.Errorf("the node counted %v, the scalper %v", got, counts)
	}
	if got := x.try(t, "POST", x.purchases(), one, "X-Buyer-Id: scalper-999", forwarded(0)); got.status != http.StatusAccepted {
		t.Errorf("a buyer at another address: %s", got)
	}
}
