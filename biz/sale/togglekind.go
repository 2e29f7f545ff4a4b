package sale

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of toggles.
const (
	MaxToggleName = 64  // bytes
	maxPercent    = 100 // of a toggle that is a percentage
)

// ToggleKind is what can be known of a toggle before it is set.
type ToggleKind struct {
	Name    string
	Values  []string // the first is the default; none: a percentage, 100 by default
	PerSKU  bool     // it may be set for a single SKU
	InFile  bool     // a node's file may say it
	Meaning string   // of the values that are not the default, for operators; one line
}

// toggleKinds is the one table of toggles, by name.
var toggleKinds = sortedKinds([]ToggleKind{
	{ToggleEntrance, []string{EntranceOpen, EntranceClosed}, true, true, "closed: purchases answer NOT_ON_SALE, PAUSED; closed for all is closed for each"},
	{TogglePath, []string{string(ModeRedis), string(ModeMySQL)}, true, false, "mysql: sell past Redis; each SKU's ledger keeps it"},
	{ToggleDurability, []string{DurabilityOutbox, DurabilityJournal}, true, true, "journal: accept before MySQL has the order, for when MySQL is down"},
	{ToggleFallback, []string{SwitchOn, SwitchOff}, true, true, "off: a buyer whose slot is empty does not ask the reserve"},
	{ToggleSoldoutFlag, []string{SwitchOn, SwitchOff}, true, true, "off: every purchase asks Redis, also of what is known to be sold out"},
	{ToggleStockRead, []string{StockLive, StockFrozen}, true, true, "frozen: stock is shown as last known, and nothing is read for it"},
	{ToggleRateScale, nil, false, true, "percent of their usual rates that all buckets let through"},
	{ToggleReshare, []string{WorkRuns, WorkPauses}, false, true, "pause: no reshare starts by itself"},
	{ToggleExpiry, []string{WorkRuns, WorkPauses}, false, true, "pause: orders that were not paid in time stay"},
	{ToggleRelay, []string{WorkRuns, WorkPauses}, false, true, "pause: accepted orders are not published"},
	{ToggleConsumer, []string{WorkRuns, WorkPauses}, false, true, "pause: orders are not written"},
	breakerKind(BreakerLanes, "of every lane to a Redis master"),
	breakerKind(BreakerOutbox, "before MySQL's promises"),
	breakerKind(BreakerPublish, "before RabbitMQ"),
	breakerKind(BreakerBacklog, "against too many orders that are not written"),
	breakerKind(BreakerAdaptive, "against too much load on this machine"),
})

func breakerKind(breaker, where string) ToggleKind {
	return ToggleKind{
		Name: ToggleBreaker + breaker, Values: []string{BreakerAuto, BreakerOpen, BreakerClosed}, InFile: true,
		Meaning: "open, closed: force the breaker " + where,
	}
}

func sortedKinds(kinds []ToggleKind) []ToggleKind {
	slices.SortFunc(kinds, func(a, b ToggleKind) int { return cmp.Compare(a.Name, b.Name) })
	return kinds
}

// ToggleKinds lists every toggle by name, but for the breakers of single lanes, of which there are as many as Redis
// masters.
func ToggleKinds() []ToggleKind { return slices.Clone(toggleKinds) }

// ToggleKindOf finds a toggle by name, the breaker of a single lane too.
func ToggleKindOf(name string) (kind ToggleKind, known bool) {
	if master, lane := strings.CutPrefix(name, ToggleBreaker+BreakerLane); lane {
		return breakerKind(BreakerLane+master, "of the lane to "+master), len(name) <= MaxToggleName && validMaster(master)
	}
	i, known := slices.BinarySearchFunc(toggleKinds, name, func(k ToggleKind, name string) int { return cmp.Compare(k.Name, name) })
	if !known {
		return ToggleKind{}, false
	}
	return toggleKinds[i], true
}

// validMaster tells whether s can be a host:port, or "redis", as the only master without cluster is called. Names and IPv4
// addresses have no colon, IPv6 addresses have brackets.
func validMaster(s string) bool {
	if s == "redis" {
		return true
	}
	colon := strings.LastIndexByte(s, ':')
	if colon <= 0 || colon == len(s)-1 {
		return false
	}
	for _, c := range []byte(s[colon+1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	for _, c := range []byte(s[:colon]) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._-:[]", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// Default is the value of a toggle that nobody set.
func (k ToggleKind) Default() string {
	if k.Values == nil {
		return FullRate
	}
	return k.Values[0]
}

// Allows tells whether the toggle can have a value. A percentage is a whole number in its only form.
func (k ToggleKind) Allows(value string) bool {
	if k.Values == nil {
		n, err := strconv.Atoi(value)
		return err == nil && n >= 0 && n <= maxPercent && strconv.Itoa(n) == value
	}
	return slices.Contains(k.Values, value)
}

// Allowed says what the toggle may be, as messages have it.
func (k ToggleKind) Allowed() string {
	if k.Values == nil {
		return "a whole number from 0 to 100"
	}
	return "one of " + strings.Join(k.Values, ", ")
}

// Page names the toggle's page in conf/runbook.
func (k ToggleKind) Page() string {
	name := k.Name
	if strings.HasPrefix(name, ToggleBreaker) {
		name = strings.TrimSuffix(ToggleBreaker, ".")
	}
	return "toggle-" + strings.ReplaceAll(name, "_", "-") + ".md"
}

// Check refuses names, values and scopes that there are not: *InputError naming name, value or scope.
func (t Toggle) Check() error {
	kind, known := ToggleKindOf(t.Name)
	switch {
	case !known:
		return BadInput("name", "must be one of "+strings.Join(toggleNames(), ", ")+", "+ToggleBreaker+BreakerLane+"HOST:PORT or "+ToggleBreaker+BreakerLane+"redis")
	case !kind.Allows(t.Value):
		return BadInput("value", "must be "+kind.Allowed())
	case t.Scope != "" && !kind.PerSKU:
		return BadInput("scope", t.Name+" is for all SKUs together")
	case t.Scope != "" && !ValidSKUID(t.Scope):
		return BadInput("scope", "must match "+SKUIDPattern)
	}
	return nil
}

func toggleNames() []string {
	names := make([]string, len(toggleKinds))
	for i, k := range toggleKinds {
		names[i] = k.Name
	}
	return names
}
