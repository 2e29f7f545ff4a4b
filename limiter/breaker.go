package limiter

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/util"

	"stockade/biz/sale"
)

// StateHalfOpen is a breaker that has let one call through and waits for what becomes of it. The other states are
// sale.BreakerOpen and sale.BreakerClosed.
const StateHalfOpen = "half-open"

// BreakerState is a breaker as it is in effect.
type BreakerState struct {
	Name    string
	State   string
	Forced  bool      // by an operator
	Why     string    // of the last change; of the backlog's, as long as nobody can count: that
	Since   time.Time // of the last change; zero: since the start
	Changes uint64    // of the state, since the start
	Refused uint64    // calls, since the start
}

// kind is one of the two reasons for which a breaker opens; each has a rule of its own in Sentinel.
type kind int

const (
	slowKind kind = iota
	errorKind
	kinds
)

// Breaker keeps calls away from one dependency while it is sick. All methods may be called by many goroutines.
type Breaker struct {
	name     string
	resource string // its name in Sentinel
	set      *Breakers
	refused  atomic.Uint64
	shutTill atomic.Int64 // Unix milliseconds: before it a call would be refused

	mu    sync.Mutex
	rules [kinds]circuitbreaker.Rule // zero Resource: none
	parts [kinds]part
	last  BreakerState // as it was logged last
}

// part is what one rule makes of the breaker.
type part struct {
	state circuitbreaker.State
	until int64 // of Open: Unix milliseconds
	why   string
}

// Allow asks for one call; sale.ErrBreakerOpen refuses it. Otherwise done must be called once with the call's error, or nil,
// and how long it took.
func (b *Breaker) Allow() (done func(err error, took time.Duration), err error) {
	switch b.set.forced(b.name) {
	case sale.BreakerClosed:
		return func(error, time.Duration) {}, nil
	case sale.BreakerOpen:
		b.refused.Add(1)
		return nil, sale.ErrBreakerOpen
	}
	entry, blocked := api.Entry(b.resource, api.WithSlotChain(b.set.chain))
	if blocked != nil {
		b.refused.Add(1)
		return nil, sale.ErrBreakerOpen
	}
	return func(err error, took time.Duration) {
		entry.Context().PutRt(uint64(max(took.Milliseconds(), 1))) // for 0, Sentinel takes the time by its own clock
		entry.Exit(base.WithError(err))
	}, nil
}

// Open tells, without asking for a call, whether it would be refused now.
func (b *Breaker) Open() bool {
	switch b.set.forced(b.name) {
	case sale.BreakerClosed:
		return false
	case sale.BreakerOpen:
		return true
	}
	till := b.shutTill.Load()
	return till > 0 && nowMs() < till
}

// State is the breaker's state now.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.last.forcedBy(b.set.forced)
	s.Refused = b.refused.Load()
	return s
}

// changed takes Sentinel's word for a new state of one rule. Rules that are no longer in force are not listened to.
func (b *Breaker) changed(rule circuitbreaker.Rule, to circuitbreaker.State, value any) {
	k := errorKind
	if rule.Strategy == circuitbreaker.SlowRequestRatio {
		k = slowKind
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rules[k].Id != rule.Id {
		return
	}
	p, now := b.parts[k], nowMs()
	switch other := b.parts[kinds-1-k]; {
	case to == circuitbreaker.Closed:
		p = part{}
	case to == circuitbreaker.HalfOpen: // what it was open for holds if it is taken back
	case p.state == circuitbreaker.HalfOpen && other.state == circuitbreaker.Open && now < other.until:
		// The other rule refused the probe, and Sentinel took half-open back: this rule's time is over as it was.
	default:
		p.until, p.why = now+int64(rule.RetryTimeoutMs), openedBy(rule, value)
	}
	p.state = to
	b.parts[k] = p
	b.note("")
}

func openedBy(rule circuitbreaker.Rule, value any) string {
	ratio, _ := value.(float64)
	if rule.Strategy == circuitbreaker.SlowRequestRatio {
		return fmt.Sprintf("%.0f %% of calls took longer than %d ms", ratio*100, rule.MaxAllowedRtMs)
	}
	return fmt.Sprintf("%.0f %% of calls failed", ratio*100)
}

// note makes one state of both rules', and logs a change once. The caller holds mu.
func (b *Breaker) note(why string) {
	state, till := sale.BreakerClosed, int64(0)
	for _, p := range b.parts {
		switch {
		case p.state == circuitbreaker.Open:
			state, till = sale.BreakerOpen, max(till, p.until)
			why = p.why
		case p.state == circuitbreaker.HalfOpen && state != sale.BreakerOpen:
			state = StateHalfOpen
		}
	}
	if state == StateHalfOpen {
		till = math.MaxInt64
	}
	b.shutTill.Store(till)
	if state == b.last.State {
		return
	}
	if why == "" {
		why = "a call went well"
		if state == StateHalfOpen {
			why = "its time is over, one call is let through"
		}
	}
	from := b.last.State
	b.last.State, b.last.Why, b.last.Since = state, why, util.Now()
	b.last.Changes++
	b.set.announce(b.last, from)
}

// govern has the breaker go by a rule. What changes in it starts anew, closed.
func (b *Breaker) govern(r Rule) error {
	b.mu.Lock()
	changed := false
	for k, next := range b.sentinelRules(r) {
		id := b.rules[k].Id
		if next.Resource != "" {
			next.Id = id
		}
		if next == b.rules[k] {
			continue
		}
		changed = true
		if next.Resource != "" {
			b.set.versions++
			next.Id = strconv.FormatUint(b.set.versions, 10)
		}
		b.rules[k], b.parts[k] = next, part{}
	}
	var load []*circuitbreaker.Rule
	for k := range b.rules {
		if rule := b.rules[k]; rule.Resource != "" {
			load = append(load, &rule)
		}
	}
	if changed {
		b.note("its rule was changed")
	}
	b.mu.Unlock()
	if !changed {
		return nil
	}
	_, err := circuitbreaker.LoadRulesOfResource(b.resource, load)
	return err
}

// sentinelRules is a rule in Sentinel's terms. ProbeNum stays 0: with it, a half-open breaker would let everything through.
func (b *Breaker) sentinelRules(r Rule) (rules [kinds]circuitbreaker.Rule) {
	common := circuitbreaker.Rule{
		Resource: b.resource, RetryTimeoutMs: uint32(r.OpenMs), MinRequestAmount: uint64(r.MinCalls),
		StatIntervalMs: uint32(r.WindowMs), StatSlidingWindowBucketCount: windowParts,
	}
	if r.SlowPercent > 0 {
		rules[slowKind] = common
		rules[slowKind].Strategy = circuitbreaker.SlowRequestRatio
		rules[slowKind].MaxAllowedRtMs, rules[slowKind].Threshold = uint64(r.SlowMs), float64(r.SlowPercent)/100
	}
	if r.ErrorPercent > 0 {
		rules[errorKind] = common
		rules[errorKind].Strategy = circuitbreaker.ErrorRatio
		rules[errorKind].Threshold = float64(r.ErrorPercent) / 100
	}
	return rules
}

// forget takes the breaker's rules out of Sentinel: from now on it allows everything.
func (b *Breaker) forget() {
	listening.remove(b)
	_ = circuitbreaker.ClearRulesOfResource(b.resource) // fails only for an empty name
	b.shutTill.Store(0)
}

// nowMs is the time by Sentinel's clock, in Unix milliseconds.
func nowMs() int64 { return int64(util.CurrentTimeMillis()) }
