package service

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Bounds of the healer.
const (
	maxAsked       = 1024                   // SKUs that may wait to be healed; the rounds find the others
	healsAtOnce    = 4                      // SKUs healed at the same time
	healListings   = 200                    // SKUs read from MySQL in one step of a round
	healScan       = 2000                   // SKUs whose ledgers are looked at in one round, in turn
	healOther      = 50                     // SKUs without traffic whose shares are looked at in one round, in turn
	healActive     = 1000                   // SKUs with traffic whose shares are looked at in one round
	healSpacing    = 500 * time.Millisecond // between reshares of one SKU
	healSpacingMax = 30 * time.Second       // the most it grows to, while reshares change nothing
	healTick       = 250 * time.Millisecond // between looks at SKUs that wait
	healRound      = time.Second            // between rounds
	healTimeout    = 2 * time.Second        // one look at a SKU, without its reshare
)

// Why is what made somebody ask the healer to look at a SKU; several may come together.
type Why uint8

// The reasons. The healer looks for itself before it does anything but for WhyShort and WhyDrift, which only a full
// reshare can end.
const (
	WhyLoss  Why = 1 << iota // a share is gone or of another epoch, or nobody finishes a reshare
	WhyShort                 // MySQL had too few units for what the gate admitted
	WhyDrift                 // gate and ledger do not add up, three times in a row
	WhyTail                  // home and reserve are empty, other shares have enough
)

// Healer starts reshares by itself: whenever the gate does not match the truth, or has units where nobody finds them.
type Healer struct {
	HealerParts
	wake chan struct{} // somebody asked
	sem  chan struct{} // healsAtOnce
	work sync.WaitGroup

	mu     sync.Mutex
	asked  map[string]ask
	known  map[string]*patient
	after  string // last SKU of the turn through all ledgers
	others string // and of the turn through all shares
	gate   string // identity at the last round
	failed *trouble
}

// AnyEpoch asks about whatever epoch there is by then.
const AnyEpoch = math.MaxInt64

// ask is what a SKU waits for, and the newest epoch that somebody asked about.
type ask struct {
	why   Why
	epoch int64
}

// HealerParts are what a Healer is made of.
type HealerParts struct {
	Ledgers      Ledgers
	Gate         Gate
	Layer        Layer
	Resharer     *Resharer
	Conservation *Conservation
	Active       func(time.Duration) []string // SKUs with traffic on this node within that time
	Paused       func() bool                  // nil: never; a paused healer looks, and starts nothing
	Fallback     func(sku string) bool        // nil: always; whether buyers may ask the reserve
	Audit        *AuditLog                    // of full reshares; nil: none
	Now          func() time.Time
	Log          *slog.Logger
}

// patient is what the healer knows of one SKU.
type patient struct {
	busy    bool
	sign    stalled
	next    time.Time     // no reshare before
	spacing time.Duration // until the one after the next
}

// NewHealer returns a healer; Run does its work.
func NewHealer(p HealerParts) *Healer {
	if p.Paused == nil {
		p.Paused = func() bool { return false }
	}
	return &Healer{
		HealerParts: p, wake: make(chan struct{}, 1), sem: make(chan struct{}, healsAtOnce),
		asked: map[string]ask{}, known: map[string]*patient{}, failed: newTrouble(p.Log, p.Now),
	}
}

// Ask has the healer look at a SKU soon, because of what was seen under an epoch: a short ledger or a drift that a reshare
// has ended since, on whatever node, is no reason for another one. It never blocks; a nil Healer does nothing. What does
// not fit into the bounded queue is found by the rounds.
func (h *Healer) Ask(sku string, why Why, epoch int64) {
	if h == nil {
		return
	}
	h.mu.Lock()
	before, waits := h.asked[sku]
	fits := waits || len(h.asked) < maxAsked
	if fits {
		h.asked[sku] = ask{before.why | why, max(before.epoch, epoch)}
	}
	h.mu.Unlock()
	if fits && before.why|why != before.why {
		select {
		case h.wake <- struct{}{}:
		default: // it will look at all of them
		}
	}
}

// Run heals until ctx ends, and returns when the last reshare that it started has.
func (h *Healer) Run(ctx context.Context) {
	defer h.work.Wait()
	tick, round := time.NewTicker(healTick), time.NewTicker(healRound)
	defer tick.Stop()
	defer round.Stop()
	var rounds sync.WaitGroup
	defer rounds.Wait()
	busy := make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-round.C:
			// Beside the loop: while a dependency hangs, what was asked for must not wait for the round to end.
			select {
			case busy <- struct{}{}:
				rounds.Go(func() { h.Round(ctx); <-busy })
			default:
			}
			continue
		case <-h.wake:
		case <-tick.C:
		}
		h.Heal(ctx)
	}
}

// Heal starts a look at every SKU that was asked for and is not being looked at, as far as healsAtOnce allows.
func (h *Healer) Heal(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	for sku, asked := range h.asked {
		p := h.patient(sku)
		if p.busy || now.Before(p.next) {
			continue
		}
		select {
		case h.sem <- struct{}{}:
		default:
			return
		}
		p.busy = true
		delete(h.asked, sku)
		h.work.Go(func() {
			again := h.look(ctx, sku, asked)
			<-h.sem
			h.mu.Lock()
			p.busy = false
			if soon := h.Now().Add(healTick); again != 0 && soon.After(p.next) {
				p.next = soon
			}
			h.mu.Unlock()
			if again != 0 {
				h.Ask(sku, again, asked.epoch)
			}
		})
	}
}

// Settle waits until nothing that Heal started is under way.
func (h *Healer) Settle() { h.work.Wait() }

// patient finds or makes what is known of a SKU. The caller holds mu.
func (h *Healer) patient(sku string) *patient {
	p := h.known[sku]
	if p == nil {
		p = &patient{}
		h.known[sku] = p
	}
	return p
}

// look finds out what a SKU needs, and does it. again is what has to be looked at once more.
func (h *Healer) look(ctx context.Context, sku string, asked ask) (again Why) {
	why := asked.why
	need, order, err := h.examine(ctx, sku, asked)
	if err != nil {
		h.trouble(ctx, "gate not looked at", sku, err)
		return why // a share that does not answer is no reason to shut its SKU
	}
	if !need {
		return order.again
	}
	if h.Paused() {
		return 0 // the rounds find it again
	}
	record, err := h.Resharer.Reshare(ctx, sku, order.ReshareOrder)
	h.space(sku, err != nil || record.Lost || record.Moved || record.Drift != 0)
	switch {
	case errors.Is(err, sale.ErrConflict), errors.Is(err, sale.ErrNotFound):
		return 0 // somebody else's work now
	case err != nil:
		h.trouble(ctx, "not healed", sku, err)
		return why | WhyLoss
	}
	if order.Full {
		h.Audit.reshared(ctx, sku, order.Reason)
	}
	h.Conservation.reshared(sku, record)
	return 0
}

// prescription is what a SKU needs, or what to look at again when it is too early to tell.
type prescription struct {
	ReshareOrder
	again Why
}

// examine tells whether a SKU needs a reshare, and which. An error says that it cannot be told.
func (h *Healer) examine(ctx context.Context, sku string, asked ask) (need bool, rx prescription, err error) {
	why := asked.why
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	l, err := h.Ledgers.Listing(ctx, sku)
	if errors.Is(err, sale.ErrNotFound) {
		return false, rx, nil
	}
	if err != nil {
		return false, rx, err
	}
	rx.Seen = l.Ledger.Epoch
	if asked.epoch < l.Ledger.LiveEpoch {
		why &^= WhyShort | WhyDrift
	}
	if l.Ledger.State == sale.Resharing || (l.Ledger.Epoch > 0 && !l.Ledger.Live()) {
		if l.State == sale.ClosedOut {
			return false, rx, nil
		}
		if !h.dead(l) {
			rx.again = why | WhyLoss
			return false, rx, nil
		}
		rx.Reason, rx.Full = halfWay, true
		if l.Ledger.Mode != sale.ModeMySQL {
			_, err = h.Gate.Peek(ctx, sku, l.Slots) // all shares must answer before the epoch is raised
		}
		return true, rx, err
	}
	if !keepsShares(l) {
		return false, rx, nil
	}
	figures, err := h.Gate.Peek(ctx, sku, l.Slots)
	if err != nil {
		return false, rx, err
	}
	gate, err := h.Layer.Identity(ctx)
	if err != nil {
		return false, rx, err
	}
	if reason := mismatch(figures, gate, l); reason != "" {
		rx.Reason, rx.Full = reason, true
		return true, rx, nil
	}
	reserve := h.Fallback == nil || h.Fallback(sku)
	return prescribe(why, figures, reserve, rx)
}

// prescribe answers what was asked for of a SKU whose shares are whole. reserve tells whether buyers may ask the reserve:
// units that not everybody reaches are brought there, else to the slots.
func prescribe(why Why, figures []sale.Figures, reserve bool, rx prescription) (bool, prescription, error) {
	var left, slots int64
	for _, f := range figures {
		left += f.Left
		if f.Share != sale.Reserve {
			slots += f.Left
		}
	}
	switch {
	case why&WhyShort != 0:
		rx.Reason, rx.Full = "the ledger was short", true
	case why&WhyDrift != 0:
		rx.Reason, rx.Full = "drift", true
	case why&WhyTail != 0 && reserve && slots > 0:
		rx.Reason, rx.Tail = "tail", true
	case why&WhyTail != 0 && !reserve && left > 0:
		rx.Reason, rx.Spread = "tail without reserve", true
	default:
		return false, rx, nil
	}
	return true, rx, nil
}

// dead tells whether the reshare of a SKU shows no sign of life for too long.
func (h *Healer) dead(l sale.Listing) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.patient(l.ID).sign.look(l.Ledger, h.Now())
}

// space sets when the SKU may be reshared next. Only a reshare that went through and found nothing to change makes the
// next one wait longer: one that failed, or lost to another node's, says nothing of what the SKU needs.
func (h *Healer) space(sku string, helped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.patient(sku)
	if helped || p.spacing == 0 {
		p.spacing = healSpacing
	} else {
		p.spacing = min(2*p.spacing, healSpacingMax)
	}
	p.next = h.Now().Add(p.spacing)
}

func (h *Healer) trouble(ctx context.Context, message, sku string, err error) {
	if ctx.Err() == nil {
		h.failed.warn(ctx, message, sku, err)
	}
}
