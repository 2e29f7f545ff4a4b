package limiter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"stockade/biz/sale"
)

// Steps of the adaptive protection, which samples once a second.
const (
	sampleEvery  = time.Second
	hotSamples   = 3  // in a row, before anybody is refused
	shedUp       = 10 // percentage points
	shedDown     = 5
	maxShed      = 90  // percent: the rest shows whether it got better
	allRefused   = 100 // percent
	shedScramble = 37  // has no divisor in common with 100, so that refusals are spread over each hundred
)

// Load knows how much this node has in hand, and refuses a part of it while the machine has more to do than it can. All
// methods but Run may be called by many goroutines; none takes a lock or allocates, but State and Sample.
type Load struct {
	cfg   Config
	parts LoadParts

	inFlight atomic.Int64
	shed     atomic.Int64  // percent
	turn     atomic.Uint64 // of purchases while some are refused
	refused  atomic.Uint64

	mu    sync.Mutex
	hot   int  // samples in a row
	blind bool // the last sample failed
	last  BreakerState
}

// LoadParts are what a Load needs.
type LoadParts struct {
	// CPU is how busy the machine's processors were since the last call, in percent.
	CPU    func() (percent float64, err error)
	Forced func(name string) string // see BreakerParts; open refuses every purchase
	Now    func() time.Time
	Log    *slog.Logger
}

// NewLoad returns a Load that refuses nothing until Run or Sample has found reasons.
func NewLoad(cfg Config, p LoadParts) *Load {
	if p.Forced == nil {
		p.Forced = func(string) string { return sale.BreakerAuto }
	}
	return &Load{cfg: cfg, parts: p, last: BreakerState{Name: sale.BreakerAdaptive, State: sale.BreakerClosed}}
}

// Enter counts a request in. False means that the node has as many in hand as it may: the request is not counted.
func (l *Load) Enter() bool {
	if l.inFlight.Add(1) <= int64(l.cfg.MaxInFlight) {
		return true
	}
	l.inFlight.Add(-1)
	return false
}

// Leave counts out a request that Enter counted in.
func (l *Load) Leave() { l.inFlight.Add(-1) }

// InFlight is how many requests are in hand.
func (l *Load) InFlight() int64 { return l.inFlight.Load() }

// ShedPercent is the part of the purchases that is refused.
func (l *Load) ShedPercent() int {
	switch l.parts.Forced(sale.BreakerAdaptive) {
	case sale.BreakerOpen:
		return allRefused
	case sale.BreakerClosed:
		return 0
	}
	return int(l.shed.Load())
}

// Shed tells whether the next purchase is to be refused.
func (l *Load) Shed() bool {
	percent := l.ShedPercent()
	if percent == 0 {
		return false
	}
	if l.turn.Add(1)*shedScramble%allRefused >= uint64(percent) {
		return false
	}
	l.refused.Add(1)
	return true
}

// Run samples once a second until ctx ends, and not at all on a system that does not tell its processors' use.
func (l *Load) Run(ctx context.Context) {
	if l.cfg.AdaptiveCPUPercent == 0 {
		return
	}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !l.look(ctx) {
			return
		}
	}
}

// look samples once, and logs when the processors' use cannot be read any more, and when it can again; nobody is refused in
// between. A node that is out of file descriptors needs the protection as soon as it has some. False: it never can.
func (l *Load) look(ctx context.Context) bool {
	err := l.Sample()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		if l.blind {
			l.parts.Log.InfoContext(ctx, "adaptive protection is back: the use of the processors can be read")
		}
		l.blind = false
		return true
	}
	if !l.blind {
		l.parts.Log.WarnContext(ctx, "adaptive protection is off: the use of the processors cannot be read", "error", err)
	}
	l.blind, l.hot = true, 0
	l.move(0, "the use of the processors cannot be read")
	return !errors.Is(err, fs.ErrNotExist)
}

// Sample looks at the machine once and moves the part that is refused a step.
func (l *Load) Sample() error {
	cpu, err := l.parts.CPU()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.inFlight.Load()
	if cpu < float64(l.cfg.AdaptiveCPUPercent) || waiting <= int64(l.cfg.AdaptiveInFlight) {
		l.hot = 0
		l.move(max(l.shed.Load()-shedDown, 0), "the machine keeps up")
		return nil
	}
	l.hot++
	if l.hot >= hotSamples {
		l.move(min(l.shed.Load()+shedUp, maxShed), fmt.Sprintf("processors %.0f %% busy, %d requests in hand", cpu, waiting))
	}
	return nil
}

// move sets the part that is refused; only its begin and its end are changes of state. The caller holds mu.
func (l *Load) move(percent int64, why string) {
	l.shed.Store(percent)
	state := sale.BreakerClosed
	if percent > 0 {
		state = sale.BreakerOpen
	}
	if state == l.last.State {
		return
	}
	from := l.last.State
	l.last.State, l.last.Why, l.last.Since = state, why, l.parts.Now()
	l.last.Changes++
	l.parts.Log.Warn("breaker "+state, "breaker", l.last.Name, "from", from, "why", why)
}

// State is open while some purchases are refused.
func (l *Load) State() BreakerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.last.forcedBy(l.parts.Forced)
	s.Refused = l.refused.Load()
	return s
}
