//go:build services

package drill_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"
)

// The operator of a sale.
const (
	topUpPause  = time.Second // between two changes of a total, at most, half of it on average
	mostUnits   = 9           // of one change
	downOneIn   = 3           // changes that take units away
	exitRefused = 65          // of a command: a value is not allowed; nothing was changed
	exitLate    = 1           // of a command: the state is another one, or a reshare came first; nothing was changed
)

// Codes of changes of totals; any other outcome is noAnswer.
const (
	topUpDone    = "TOPPED_UP"
	topUpRefused = "TOP_UP_REFUSED" // the total would fall below what is promised
	topUpLate    = "TOP_UP_LATE"    // nothing was changed
)

// keepTotals makes MySQL write down each change of a total within the very transaction that makes it: no call has to be
// believed about its own outcome.
func (w *world) keepTotals() {
	w.t.Helper()
	for _, statement := range []string{
		"CREATE TABLE drill_totals (seq BIGINT AUTO_INCREMENT PRIMARY KEY, sku VARCHAR(64) NOT NULL, added BIGINT NOT NULL, at BIGINT NOT NULL)",
		`CREATE TRIGGER drill_total AFTER UPDATE ON ledger FOR EACH ROW
		IF NEW.total <> OLD.total THEN
			INSERT INTO drill_totals (sku, added, at)
			VALUES (NEW.sku, NEW.total - OLD.total, CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED));
		END IF`,
	} {
		_, err := w.db.Exec(statement)
		w.must(err)
	}
}

// totalChange is a change of a total that MySQL has written down.
type totalChange struct {
	added int64
	at    int64 // Unix ms, before its commit
}

const totalsQuery = "SELECT added, at FROM drill_totals WHERE sku = ? ORDER BY seq"

// topUp has totals changed by hand while the sale goes on, up more often than down, until it is over.
func (c *crowd) topUp(skus ...*sku) {
	seed := rand.Uint64()
	c.w.t.Logf("operator: seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	c.all.Go(func() {
		for n := 0; !c.over.Load(); n++ {
			units := 1 + rng.Int64N(mostUnits)
			if rng.IntN(downOneIn) == 0 {
				units = -units
			}
			c.adjust(rng, request{
				kind: adjusting, sku: skus[rng.IntN(len(skus))].name, key: fmt.Sprint("change ", n), quantity: units,
			})
			pass(time.Duration(rng.Int64N(int64(topUpPause))))
		}
	})
}

// adjust asks a node for one change of a total, once, and records what came of it.
func (c *crowd) adjust(rng *rand.Rand, r request) {
	c.hand.Lock()
	defer c.hand.Unlock()
	call := c.h.now()
	_, err := c.w.any(rng).TryCLI("sku", "adjust", r.sku, fmt.Sprintf("%+d", r.quantity))
	a := answer{Code: noAnswer}
	var exit *exec.ExitError
	switch {
	case err == nil:
		a.Code = topUpDone
	case !errors.As(err, &exit):
		a = answer{Code: unforeseen, Reason: err.Error()}
	case exit.ExitCode() == exitRefused:
		a = answer{Code: topUpRefused}
	case exit.ExitCode() == exitLate:
		a.Code = topUpLate
	}
	c.h.add(attempt{request: r, answer: a, client: buyers, call: call, returned: c.h.now()})
}

// explain finds the call behind each change of a total: that of the same units which was told of it, or else one that got
// no answer. The changes come back with the times between which they happened; returned is 0 when nobody knows.
func (tr truth) explain(began time.Time, attempts []attempt) (changes []attempt, lost, unexplained []string) {
	open := slices.Clone(tr.changes)
	find := func(a attempt, until time.Duration) bool {
		for i, c := range open {
			at := sinceBegan(c.at, began)
			if c.added != a.quantity || at+clockSlack < a.call || at > until {
				continue
			}
			open = slices.Delete(open, i, i+1)
			a.call, a.returned = max(a.call, at), until
			changes = append(changes, a)
			return true
		}
		return false
	}
	for _, a := range attempts {
		if a.kind == adjusting && a.Code == topUpDone && !find(a, a.returned) {
			lost = append(lost, fmt.Sprintf("%s of %+d units was told done, and the total did not change", a.key, a.quantity))
		}
	}
	for _, a := range attempts {
		if a.kind == adjusting && a.Code == noAnswer {
			find(a, 1<<62)
		}
	}
	for _, c := range open {
		unexplained = append(unexplained, fmt.Sprintf("the total changed by %+d units at %v, and nobody can have asked for that",
			c.added, sinceBegan(c.at, began)))
	}
	return changes, lost, unexplained
}

// totals says what is wrong with the total and its changes.
func (tr truth) totals(s *sku, began time.Time, attempts []attempt) (lost, unexplained []string) {
	_, lost, unexplained = tr.explain(began, attempts)
	want := s.total
	for _, c := range tr.changes {
		want += c.added
	}
	if tr.total != want {
		unexplained = append(unexplained, fmt.Sprintf("the total is %d, its changes make it %d", tr.total, want))
	}
	return lost, unexplained
}

// compareTotals holds the changes of a total that are written against what the operator was told.
func (c *crowd) compareTotals(s *sku, tr truth, attempts []attempt, f *figures) {
	c.w.t.Helper()
	lost, unexplained := tr.totals(s, c.h.began, attempts)
	f.lost += int64(len(lost))
	f.unexplained += int64(len(unexplained))
	for _, wrong := range slices.Concat(lost, unexplained) {
		c.w.t.Errorf("%s: %s", s.name, wrong)
	}
	told := map[string]int{}
	for _, a := range attempts {
		if a.kind == adjusting {
			told[a.Code]++
		}
	}
	if len(told) > 0 {
		c.w.t.Logf("totals of %s: %d changed to %d by %d changes, the operator was told %v", s.name, s.total, tr.total, len(tr.changes), told)
	}
}

// wantTopUps checks that the operator has done something to the sale.
func (c *crowd) wantTopUps() {
	c.w.t.Helper()
	if c.h.count(topUpDone) == 0 {
		c.w.t.Error("no change of a total was told done")
	}
}

// topUps adds the changes of the total, and the refusals, each of which was right at some moment of its call.
func (b *opBuilder) topUps(began time.Time, attempts []attempt, end time.Duration) {
	changes, _, _ := b.truth.explain(began, attempts)
	for _, c := range changes {
		b.add(op{kind: opTopUp, quantity: c.quantity}, c.call, min(c.returned, end))
	}
	for _, a := range attempts {
		if a.kind == adjusting && a.Code == topUpRefused {
			b.add(op{kind: opRefuse, quantity: a.quantity}, a.call, a.returned)
		}
	}
}
