//go:build services && soak

package drill_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The soak.
const (
	soakMinutes   = 10
	faultEvery    = 3 * time.Second // on average: 20 a minute
	faultsAMinute = 15              // at least
	soakWindow    = 20 * time.Second
	soakPace      = 2 * time.Second
	soakBound     = 30 * time.Second // until the sale goes on when everything is well again
	reportEvery   = 15 * time.Second
	soakRolling   = 1100 // units of the SKU that is nearly sold out all the time
	soakPaid      = 100  // units more of it for each minute, that payments take away
)

// summary is what a soak leaves behind, as one line of JSON.
type summary struct {
	Seed            uint64             `json:"seed"`
	Minutes         float64            `json:"minutes"`
	Faults          map[string]int     `json:"faults"`
	FaultsAMinute   float64            `json:"faults_a_minute"`
	Purchases       int                `json:"purchases"`
	FirstAttempts   map[string]int     `json:"first_attempts"` // by code
	FirstVerdict    float64            `json:"first_attempts_with_a_verdict"`
	Answers         map[string]int     `json:"answers"`
	SKUs            map[string]verdict `json:"skus"`
	RecoverySeconds float64            `json:"recovery_s"`
	SettledSeconds  float64            `json:"settled_s"`
	Failed          bool               `json:"failed"`
}

// verdict is the audit of one SKU.
type verdict struct {
	Attempts     int   `json:"attempts"`
	Acknowledged int   `json:"acknowledged"`
	Unknown      int   `json:"unknown"`
	Lost         int64 `json:"lost"`
	Unexplained  int64 `json:"unexplained"`
	Duplicate    int64 `json:"duplicate"`
	Oversold     int64 `json:"oversold"`
	OverLimit    int64 `json:"over_limit"`
	Drift        int64 `json:"drift"`
	Stranded     int64 `json:"stranded"`
}

// fromEnv reads a number that the Makefile hands on.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}

// One endless sale with payments, cancels and expiries, in which nodes, servers and links break at random.
func TestSoak(t *testing.T) {
	minutes := fromEnv(t, "STOCKADE_SOAK_MINUTES", soakMinutes)
	seed := fromEnv(t, "STOCKADE_SOAK_SEED", rand.Uint64())
	t.Logf("seed %d, %d minutes", seed, minutes)
	w := newWorld(t)
	w.takePayments()
	w.pace, w.rough = soakPace, true
	w.start(2)
	skus := []*sku{w.createFor(soakWindow, soakRolling+soakPaid*int64(minutes), 2, 8)}
	for range 1 + minutes/10 { // so that no history grows too long to check
		skus = append(skus, w.create(1_000_000, 2, 8))
	}
	c := w.open(skus...)
	c.collect(seed)
	c.awaitWins(50, 30*time.Second)

	m := newMonkey(w, seed)
	began, reported, wins := time.Now(), time.Now(), c.h.wins()
	for span := time.Duration(minutes) * time.Minute; time.Since(began) < span; {
		m.mendDue(time.Now())
		m.breakSomething(time.Now())
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			t.Logf("%v: %d faults, %d purchases accepted, %v", time.Since(began).Round(time.Second), m.total(), c.h.wins(), m.broken())
		}
		pass(time.Until(m.next()))
	}
	took := time.Since(began)
	if sold := c.h.wins() - wins; sold < m.total() {
		t.Errorf("%d purchases accepted beside %d faults: this was no sale", sold, m.total())
	}
	w.step("%d faults; everything is mended", m.total())
	m.mendAll()
	s := summary{
		Seed: seed, Minutes: took.Minutes(), Faults: m.count, FaultsAMinute: float64(m.total()) / took.Minutes(),
		SKUs: map[string]verdict{},
	}
	mended := c.h.now()
	c.awaitRecovery("everything", mended, soakBound)
	if first, ok := c.h.firstWin(mended); ok {
		s.RecoverySeconds = first.Seconds()
	}
	if s.FaultsAMinute < faultsAMinute {
		t.Errorf("%.1f faults a minute, want at least %d", s.FaultsAMinute, faultsAMinute)
	}
	w.step("the sale ends; audit")
	s.SettledSeconds = c.audit(soakWindow + drainBound).Seconds()
	s.report(t, c)
}

// report prints the summary.
func (s *summary) report(t *testing.T, c *crowd) {
	t.Helper()
	for i, f := range c.found {
		s.SKUs[c.w.skus[i].name] = verdict{
			f.attempts, f.acknowledged, f.unknown, f.lost, f.unexplained, f.duplicate, f.oversold, f.overLimit, f.drift, f.stranded,
		}
	}
	s.Answers, s.Failed = c.h.codes, t.Failed()
	s.FirstAttempts = map[string]int{}
	decided := 0
	for _, a := range firstAttempts(c.h.all()) {
		s.Purchases++
		s.FirstAttempts[a.Code]++
		if a.verdict() {
			decided++
		}
	}
	s.FirstVerdict = float64(decided) / float64(max(1, s.Purchases))
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("summary %s", text)
}

// firstAttempts are the first calls of each purchase: what a buyer meets who does not ask again.
func firstAttempts(all []attempt) (firsts []attempt) {
	slices.SortStableFunc(all, func(a, b attempt) int { return cmp.Compare(a.call, b.call) })
	seen := map[request]bool{}
	for _, a := range all {
		if a.kind == buying && !seen[a.request] {
			seen[a.request] = true
			firsts = append(firsts, a)
		}
	}
	return firsts
}
