package limiter

import (
	"fmt"

	"stockade/biz/sale"
)

// Bounds of a Rule.
const (
	maxRuleMs    = 600_000
	maxCallsRule = 1_000_000
	windowParts  = 10 // a window slides in steps of a tenth
)

// Rule says when a breaker opens, and for how long. Times are milliseconds.
type Rule struct {
	// SlowMs is the longest time that a call may take and not count as slow.
	SlowMs int `yaml:"slowMs"`
	// SlowPercent is the part of slow calls that opens the breaker; 0: slowness does not.
	SlowPercent int `yaml:"slowPercent"`
	// ErrorPercent is the part of failed calls that opens the breaker; 0: failures do not.
	ErrorPercent int `yaml:"errorPercent"`
	// MinCalls is how many calls a window must have had before it can open the breaker.
	MinCalls int `yaml:"minCalls"`
	// WindowMs is how far back calls are looked at; a multiple of 10.
	WindowMs int `yaml:"windowMs"`
	// OpenMs is how long the breaker stays open before it lets one call through to see.
	OpenMs int `yaml:"openMs"`
}

// Default rules. A dependency that is as sick as can be answers at the pace of its timeout: two flushes of a lane that run
// into 250 ms are 8 calls a second, two promises that take half a second are 4. The windows are as long as ten such calls
// take, or nothing would ever open. Publishing stays shut for less: no buyer waits for it, and order rows are to be there 5 s
// after ACCEPTED.
var (
	defaultLaneRule    = Rule{SlowMs: 50, SlowPercent: 30, ErrorPercent: 50, MinCalls: 10, WindowMs: 2000, OpenMs: 10_000}
	defaultOutboxRule  = Rule{SlowMs: 500, SlowPercent: 30, ErrorPercent: 50, MinCalls: 10, WindowMs: 10_000, OpenMs: 10_000}
	defaultPublishRule = Rule{SlowMs: 2000, SlowPercent: 30, ErrorPercent: 50, MinCalls: 10, WindowMs: 10_000, OpenMs: 3000}
)

// check returns a *sale.InputError for the first field that is out of range, named below its section.
func (r Rule) check(section string) error {
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"slowMs", r.SlowMs, 1, maxRuleMs},
		{"slowPercent", r.SlowPercent, 0, 100},
		{"errorPercent", r.ErrorPercent, 0, 100},
		{"minCalls", r.MinCalls, 1, maxCallsRule},
		{"windowMs", r.WindowMs, 100, maxRuleMs},
		{"openMs", r.OpenMs, 10, maxRuleMs},
	} {
		if f.value < f.lo || f.value > f.hi {
			return sale.BadInput(section+"."+f.name, fmt.Sprintf("must be a whole number from %d to %d", f.lo, f.hi))
		}
	}
	if r.WindowMs%windowParts != 0 {
		return sale.BadInput(section+".windowMs", fmt.Sprintf("must be a multiple of %d", windowParts))
	}
	return nil
}

// set changes the field that a key of the rules file names.
func (r *Rule) set(key string, value int) error {
	fields := map[string]*int{
		"slowMs": &r.SlowMs, "slowPercent": &r.SlowPercent, "errorPercent": &r.ErrorPercent,
		"minCalls": &r.MinCalls, "windowMs": &r.WindowMs, "openMs": &r.OpenMs,
	}
	field, known := fields[key]
	if !known {
		return fmt.Errorf("%q is not slowMs, slowPercent, errorPercent, minCalls, windowMs or openMs", key)
	}
	*field = value
	return nil
}
