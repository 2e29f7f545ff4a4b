package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Bounds of an examination.
const (
	doctorStep  = 2 * time.Second  // one question about a SKU, or to the monitoring
	doctorAll   = 20 * time.Second // everything
	doctorSKUs  = 50               // SKUs that are looked at when none is named
	doctorPages = 20               // pages of SKUs read to find them
	doctorPage  = 200

	// MaxDoctorSKUs bounds the SKUs that one examination may be asked about.
	MaxDoctorSKUs = 200

	tokensEndSoon = 7 * 24 * time.Hour
	// rulesPrefix begins the names of the groups of alert rules that belong to this service.
	rulesPrefix = "stockade"
)

// Diagnoser checks one dependency by itself, within bounds of its own. Packages store, shard and mq implement it.
type Diagnoser interface {
	Diagnose(ctx context.Context) []sale.Finding
}

// Placer tells where a SKU's slots are. Package shard implements it.
type Placer interface {
	// Placement counts slots by master; masters without any are there with 0.
	Placement(ctx context.Context, sku string, slots int) (map[string]int, error)
}

// AlertRules reads the rules of a monitoring system.
type AlertRules interface {
	// Groups maps each group of rules to how many rules it has.
	Groups(ctx context.Context) (map[string]int, error)
}

// Doctor checks an installation before a sale.
type Doctor struct {
	DoctorParts
}

// DoctorParts are what a Doctor is made of.
type DoctorParts struct {
	Dependencies []Diagnoser
	Ledgers      Ledgers
	Placer       Placer
	Conservation *Conservation
	Toggles      *Toggles
	Rules        AlertRules                  // nil: none configured
	Tokens       func() map[string]time.Time // when admin tokens end, by name; zero: never
	Now          func() time.Time
}

// NewDoctor returns the use case.
func NewDoctor(p DoctorParts) *Doctor { return &Doctor{p} }

// Examination is what a Doctor found.
type Examination struct {
	Level    sale.Level     `json:"level"` // the worst one
	Findings []sale.Finding `json:"findings"`
}

// Examine checks everything at the same time, and these SKUs, or, without any, those that are loaded, open or paused. What
// does not answer is a finding and hides nothing else. *sale.InputError for a SKU's id that cannot be.
func (d *Doctor) Examine(ctx context.Context, skus []string) (Examination, error) {
	if len(skus) > MaxDoctorSKUs {
		return Examination{}, sale.BadInput("sku", fmt.Sprintf("must be at most %d", MaxDoctorSKUs))
	}
	for _, sku := range skus {
		if !sale.ValidSKUID(sku) {
			return Examination{}, sale.BadInput("sku", "must match "+sale.SKUIDPattern)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorAll)
	defer cancel()
	var parts []func(context.Context) []sale.Finding
	for _, dependency := range d.Dependencies {
		parts = append(parts, dependency.Diagnose)
	}
	parts = append(parts,
		func(ctx context.Context) []sale.Finding { return d.skus(ctx, skus) },
		func(context.Context) []sale.Finding { return d.toggles() },
		func(context.Context) []sale.Finding { return d.tokens() },
		d.rules,
	)
	found := make([][]sale.Finding, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { found[i] = part(ctx) })
	}
	all.Wait()
	e := Examination{Level: sale.LevelOK, Findings: slices.Concat(found...)}
	for _, f := range e.Findings {
		if f.Level.Worse(e.Level) {
			e.Level = f.Level
		}
	}
	return e, nil
}

// toggles makes a finding of every toggle that is not at its default, and of a file that is not followed.
func (d *Doctor) toggles() (found []sale.Finding) {
	if file := d.Toggles.File(); file.State == ToggleFileBroken {
		found = append(found, sale.CheckToggles.Fail("toggles.file", file.Error+"; what it said before stays", "mend "+file.Path))
	}
	for _, s := range d.Toggles.List() {
		kind, known := sale.ToggleKindOf(s.Name)
		if !known || s.Value == kind.Default() {
			continue
		}
		until := "until it is changed"
		if !s.Until.IsZero() {
			until = "until " + s.Until.UTC().Format(time.RFC3339)
		}
		undo := strings.TrimSuffix("stockade toggle unset "+s.Name+" --sku "+s.Scope, " --sku ")
		if s.Source == ToggleFile {
			undo = "take it out of toggles.file"
		}
		f := sale.CheckToggles.Warn(strings.TrimSpace(s.Name+" "+s.Scope),
			fmt.Sprintf("%s %s, from %s: %s", s.Value, until, s.Source, s.Reason), undo+", unless it is meant to stay")
		f.Runbook = kind.Page()
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, sale.CheckToggles.OK("", "all toggles are at their defaults"))
	}
	return found
}

// tokens makes a finding of every admin token that ends soon.
func (d *Doctor) tokens() (found []sale.Finding) {
	ends, usable := d.Tokens(), 0
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		at := ends[name]
		left := at.Sub(d.Now())
		const do = "stockade token create, hand it over, then stockade token revoke"
		if at.IsZero() || left > 0 {
			usable++
		}
		switch {
		case at.IsZero() || left >= tokensEndSoon:
		case left > 0:
			found = append(found, sale.CheckAdminTokens.Warn(name, "ends in "+left.Round(time.Minute).String(), do))
		default:
			found = append(found, sale.CheckAdminTokens.Warn(name, "expired", do))
		}
	}
	if usable == 0 {
		return append(found, sale.CheckAdminTokens.Fail("", "no admin token is good", "stockade token create NAME --role admin"))
	}
	if len(found) == 0 {
		found = append(found, sale.CheckAdminTokens.OK("", fmt.Sprintf("%d tokens, none ends within %v", usable, tokensEndSoon)))
	}
	return found
}

// rules asks whether anybody would be woken.
func (d *Doctor) rules(ctx context.Context) []sale.Finding {
	if d.Rules == nil {
		return []sale.Finding{sale.CheckAlertRules.Warn("", "doctor.prometheusURL is not set", "set it, so that this can be told")}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorStep)
	defer cancel()
	groups, err := d.Rules.Groups(ctx)
	if err != nil {
		return []sale.Finding{sale.CheckAlertRules.Fail("", "no answer: "+err.Error(), "start Prometheus, or correct doctor.prometheusURL")}
	}
	count, rules := 0, 0
	for name, n := range groups {
		if strings.HasPrefix(name, rulesPrefix) {
			count, rules = count+1, rules+n
		}
	}
	seen := fmt.Sprintf("%d rules in %d groups that begin with %s", rules, count, rulesPrefix)
	if rules == 0 {
		return []sale.Finding{sale.CheckAlertRules.Fail("", seen, "load the rules of conf/ into Prometheus")}
	}
	return []sale.Finding{sale.CheckAlertRules.OK("", seen)}
}
