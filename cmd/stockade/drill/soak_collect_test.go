//go:build services && soak

package drill_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// What becomes of orders, one in so many.
const (
	paidOneIn      = 20
	cancelledOneIn = 5
	maxChanges     = 64 // payments and cancels under way; what comes beyond is left to expiry
	changeEvery    = 100 * time.Millisecond
	changePatience = time.Minute
)

// collect has some orders paid and others cancelled, at random moments of their time, until the sale is over. The rest
// expires, where there is an end to their time.
func (c *crowd) collect(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	slots := make(chan struct{}, maxChanges)
	var changes sync.WaitGroup
	c.all.Go(func() {
		defer changes.Wait()
		for from := 0; !c.over.Load(); pass(changeEvery) {
			fresh := c.h.since(from)
			from += len(fresh)
			for _, a := range fresh {
				if a.kind != buying || !a.won() || a.replayed {
					continue
				}
				dice := rng.IntN(paidOneIn * cancelledOneIn)
				pays, cancels := dice%paidOneIn == 0, dice%cancelledOneIn == 1
				if !pays && !cancels {
					continue
				}
				select {
				case slots <- struct{}{}:
				default:
					continue
				}
				own := rand.New(rand.NewPCG(rng.Uint64(), 3))
				changes.Go(func() {
					defer func() { <-slots }()
					c.changeLater(own, a, pays)
				})
			}
		}
	})
}

// changeLater pays for an order, twice as often as not, or cancels it.
func (c *crowd) changeLater(rng *rand.Rand, a attempt, pays bool) {
	pass(time.Duration(rng.Int64N(int64(soakWindow))))
	deadline := time.Now().Add(changePatience)
	for again := rng.IntN(2); ; {
		n := c.w.any(rng)
		var said answer
		if pays {
			said = c.pay(buyers, n, a.request, a.OrderID, "payment-"+a.OrderID)
		} else {
			said = c.cancel(buyers, n, a.request, a.OrderID)
		}
		if said.settled() {
			if again == 0 {
				return
			}
			again--
		}
		if c.over.Load() || time.Now().After(deadline) {
			return
		}
		pass(retryPause)
	}
}

// since is what was recorded after the first so many.
func (h *history) since(from int) []attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]attempt(nil), h.attempts[from:]...)
}
