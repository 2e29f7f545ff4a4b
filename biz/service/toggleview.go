package service

import (
	"slices"
	"strconv"
	"strings"

	"stockade/biz/sale"
)

// toggleView is everything in effect at one moment. It is never changed.
type toggleView struct {
	states    []ToggleState                // by name, then by scope; the one for all SKUs first
	all       map[string]string            // name → value
	scoped    map[string]map[string]string // name → SKU → value
	breakers  map[string]string            // name without sale.ToggleBreaker → value
	paths     map[string]sale.Toggle       // stored words about sale.TogglePath, by scope
	rateScale int                          // percent
	journal   bool                         // orders may be acknowledged that MySQL does not have
}

// newToggleView puts what this node's file says over what is stored, and both over the defaults.
func newToggleView(local, stored []sale.Toggle) *toggleView {
	v := &toggleView{
		all: map[string]string{}, scoped: map[string]map[string]string{}, breakers: map[string]string{},
		paths: map[string]sale.Toggle{},
	}
	for _, toggle := range stored {
		if toggle.Name == sale.TogglePath {
			v.paths[toggle.Scope] = toggle
		}
	}
	for _, name := range viewed(local, stored) {
		v.add(name, statesOf(name, local, stored))
	}
	v.rateScale, _ = strconv.Atoi(v.all[sale.ToggleRateScale]) // checked when it was read
	return v
}

// viewed lists the toggles that a view has: all but the path, which the ledgers keep, and the breakers of the lanes for
// which somebody said something.
func viewed(local, stored []sale.Toggle) []string {
	var names []string
	for _, kind := range sale.ToggleKinds() {
		if kind.Name != sale.TogglePath {
			names = append(names, kind.Name)
		}
	}
	for _, toggle := range stored {
		if lane := isLane(toggle.Name); lane && !says(local, sale.ToggleBreaker+sale.BreakerLanes) {
			names = append(names, toggle.Name) // else what the file says for all lanes wins
		}
	}
	for _, toggle := range local {
		if isLane(toggle.Name) {
			names = append(names, toggle.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isLane(name string) bool { return strings.HasPrefix(name, sale.ToggleBreaker+sale.BreakerLane) }

// says tells whether there is a word about a toggle for all SKUs.
func says(toggles []sale.Toggle, name string) bool {
	return slices.ContainsFunc(toggles, func(t sale.Toggle) bool { return t.Name == name && t.Scope == "" })
}

// statesOf is one toggle by scope. What the file says for all SKUs wins over what is stored for one.
func statesOf(name string, local, stored []sale.Toggle) map[string]ToggleState {
	kind, _ := sale.ToggleKindOf(name)
	state := func(toggle sale.Toggle, source ToggleSource) ToggleState {
		return ToggleState{Toggle: toggle, Source: source, Runbook: kind.Page()}
	}
	states := map[string]ToggleState{"": state(sale.Toggle{Name: name, Value: kind.Default()}, ToggleDefault)}
	for _, toggle := range stored {
		if toggle.Name == name {
			states[toggle.Scope] = state(toggle, ToggleStored)
		}
	}
	if says(local, name) {
		clear(states)
	}
	for _, toggle := range local {
		if toggle.Name == name {
			states[toggle.Scope] = state(toggle, ToggleFile)
		}
	}
	return states
}

// add takes over the states of one toggle, by scope.
func (v *toggleView) add(name string, states map[string]ToggleState) {
	v.scoped[name] = map[string]string{}
	for _, scope := range sortedKeys(states) {
		v.states = append(v.states, states[scope])
		if scope != "" {
			v.scoped[name][scope] = states[scope].Value
			continue
		}
		v.all[name] = states[scope].Value
		if breaker, ok := strings.CutPrefix(name, sale.ToggleBreaker); ok {
			v.breakers[breaker] = states[scope].Value
		}
	}
}

// says tells whether a toggle has a value, for any SKU.
func (v *toggleView) says(name, value string) bool {
	return slices.ContainsFunc(v.states, func(s ToggleState) bool { return s.Name == name && s.Value == value })
}

// Durability is sale.DurabilityOutbox or sale.DurabilityJournal.
func (t *Toggles) Durability(sku string) string { return t.value(sale.ToggleDurability, sku) }

// Journal tells whether orders may have been acknowledged that MySQL does not have yet: durability is journal for some SKU,
// or was a minute ago.
func (t *Toggles) Journal() bool { return t != nil && t.current.Load().journal }

// Paused tells whether the background work that a toggle is named after is to stand still.
func (t *Toggles) Paused(name string) bool { return t.value(name, "") == sale.WorkPauses }

// EntranceClosed tells whether every purchase of a SKU is to be refused. Closed for all is closed for each, whatever is left
// over of an earlier word about one.
func (t *Toggles) EntranceClosed(sku string) bool {
	return t.value(sale.ToggleEntrance, "") == sale.EntranceClosed || t.value(sale.ToggleEntrance, sku) == sale.EntranceClosed
}

// Fallback tells whether a buyer whose slot has too little may ask the reserve.
func (t *Toggles) Fallback(sku string) bool {
	return t.value(sale.ToggleFallback, sku) == sale.SwitchOn
}

// SoldoutFlag tells whether purchases may be refused from this node's memory of empty shares.
func (t *Toggles) SoldoutFlag(sku string) bool {
	return t.value(sale.ToggleSoldoutFlag, sku) == sale.SwitchOn
}

// StockFrozen tells whether looks at a SKU's stock are answered as last known.
func (t *Toggles) StockFrozen(sku string) bool {
	return t.value(sale.ToggleStockRead, sku) == sale.StockFrozen
}

// RateScale is the percentage of their usual rates that buckets let through, 0 to 100.
func (t *Toggles) RateScale() int {
	if t == nil {
		return 100
	}
	return t.current.Load().rateScale
}

// Breaker is sale.BreakerAuto, sale.BreakerOpen or sale.BreakerClosed: what an operator wants of the breaker with this
// name, such as sale.BreakerOutbox, or sale.BreakerLane and a master's host:port. A lane without a word of its own goes
// by sale.BreakerLanes. A breaker that there is not is on automatic.
func (t *Toggles) Breaker(name string) string {
	if t == nil {
		return sale.BreakerAuto
	}
	breakers := t.current.Load().breakers
	if value, ok := breakers[name]; ok {
		return value
	}
	if strings.HasPrefix(name, sale.BreakerLane) {
		return breakers[sale.BreakerLanes]
	}
	return sale.BreakerAuto
}

// value is what a toggle says for a SKU; the empty one stands for all.
func (t *Toggles) value(name, sku string) string {
	if t == nil {
		kind, _ := sale.ToggleKindOf(name)
		return kind.Default()
	}
	view := t.current.Load()
	if value, ok := view.scoped[name][sku]; ok {
		return value
	}
	return view.all[name]
}
