//go:build services

package drill_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stockade/biz/sale"
)

// tale is a made-up history: what buyers heard and what is written.
type tale struct {
	sku      *sku
	attempts []attempt
	truth    truth
	began    time.Time
}

// newTale is a sale of 3 units, at most 2 each, in which two buyers bought one each, one of them twice asked, and a third
// one has an order of an unknown outcome.
func newTale() *tale {
	began := time.Now().Add(-time.Hour)
	t := &tale{sku: &sku{name: "s", total: 3, limit: 2}, began: began, truth: truth{rows: map[string]row{}, total: 3}}
	t.win("a", "A", 1, 10, 20)
	t.win("a", "A", 1, 30, 40)
	t.win("b", "B", 1, 15, 50)
	t.attempts = append(t.attempts, t.at("c", 60, 70, answer{Code: sale.Busy.String(), Outcome: unknownly, OrderID: "C"}))
	t.row("c", "C", 1, 60)
	t.attempts = append(t.attempts, t.at("d", 80, 90, answer{Code: noAnswer}), t.at("e", 85, 95, answer{Code: sale.SoldOut.String()}))
	return t
}

func (t *tale) at(buyer string, call, returned int, a answer) attempt {
	return attempt{
		request: request{sku: "s", buyer: buyer, key: "k", quantity: 1}, answer: a,
		call: time.Duration(call) * time.Millisecond, returned: time.Duration(returned) * time.Millisecond,
	}
}

func (t *tale) win(buyer, id string, quantity int64, call, returned int) {
	a := t.at(buyer, call, returned, answer{Code: sale.Accepted.String(), OrderID: id})
	a.quantity = quantity
	t.attempts = append(t.attempts, a)
	t.row(buyer, id, quantity, call)
}

func (t *tale) row(buyer, id string, quantity int64, at int) {
	if _, ok := t.truth.rows[id]; ok {
		return
	}
	accepted := t.began.Add(time.Duration(at) * time.Millisecond).UnixMilli()
	t.truth.rows[id] = row{id: id, buyer: buyer, quantity: quantity, state: sale.OrderCreated, accepted: accepted, promised: true}
	t.truth.promised += quantity
}

// close closes an order in what is written.
func (t *tale) close(id string, at int) {
	r := t.truth.rows[id]
	r.closed, r.state = t.began.Add(time.Duration(at)*time.Millisecond).UnixMilli(), sale.OrderClosed
	t.truth.rows[id] = r
	t.truth.promised -= r.quantity
}

func (t *tale) pay(id string) {
	r := t.truth.rows[id]
	r.state = sale.OrderPaid
	t.truth.rows[id] = r
}

// topUp is a call of the operator.
func (t *tale) topUp(code string, quantity int64, call, returned int) {
	a := t.at("", call, returned, answer{Code: code})
	a.kind, a.quantity = adjusting, quantity
	t.attempts = append(t.attempts, a)
}

// change changes the total in what is written.
func (t *tale) change(added int64, at int) {
	t.truth.changes = append(t.truth.changes, totalChange{added, t.began.Add(time.Duration(at) * time.Millisecond).UnixMilli()})
	t.truth.total += added
}

func (t *tale) check() string {
	lost, unexplained := t.truth.totals(t.sku, t.began, t.attempts)
	for _, wrong := range slices.Concat(lost, unexplained) {
		return wrong
	}
	return checkHistory(t.sku, operations(t.sku, t.began, t.attempts, t.truth))
}

func TestCheckerTellsGoodHistoriesFromBad(t *testing.T) {
	for _, tt := range []struct {
		name string
		good bool
		tell func(*tale)
	}{
		{"as it should be", true, func(*tale) {}},
		{"closed, and its unit sold again", true, func(s *tale) { s.close("A", 100); s.win("f", "F", 1, 98, 130) }},
		{"paid", true, func(s *tale) { s.pay("B") }},
		{"a replay says CLOSED after the close", true, func(s *tale) {
			s.close("A", 100)
			s.attempts = append(s.attempts, s.at("a", 110, 120, answer{Code: sale.Accepted.String(), OrderID: "A", State: "CLOSED"}))
		}},
		{"two units to one buyer", true, func(s *tale) { delete(s.truth.rows, "C"); s.truth.promised--; s.win("a", "A2", 1, 100, 110) }},
		{"one unit too many", false, func(s *tale) { s.win("f", "F", 1, 100, 110) }},
		{"the unit of an order that is closed later", false, func(s *tale) {
			s.win("g", "G", 1, 62, 64) // the unknown one can have come late, this one not
			s.sku.total, s.truth.total = 4, 4
			s.close("A", 200)
			s.close("C", 210)
			s.win("f", "F", 2, 100, 110)
		}},
		{"over the limit", false, func(s *tale) { s.sku.limit = 1; s.sku.total, s.truth.total = 9, 9; s.win("a", "A2", 1, 100, 110) }},
		{"an acknowledged order is lost", false, func(s *tale) { delete(s.truth.rows, "A"); s.truth.promised-- }},
		{"the ledger lost a unit", false, func(s *tale) { s.truth.promised++ }},
		{"paid and closed", false, func(s *tale) {
			s.pay("B")
			s.attempts = append(s.attempts, s.at("b", 110, 120, answer{Code: sale.Accepted.String(), OrderID: "B", State: "CLOSED"}))
		}},
		{"told CLOSED before it was", false, func(s *tale) {
			s.close("A", 100)
			s.attempts = append(s.attempts, s.at("a", 50, 60, answer{Code: sale.Accepted.String(), OrderID: "A", State: "CLOSED"}))
		}},
		{"topped up, then sold", true, func(s *tale) { s.topUp(topUpDone, 2, 95, 98); s.change(2, 96); s.win("f", "F", 2, 97, 110) }},
		{"sold before it was topped up", false, func(s *tale) { s.topUp(topUpDone, 2, 120, 130); s.change(2, 125); s.win("f", "F", 2, 97, 110) }},
		{"topped up by a call without an answer, long after it", true, func(s *tale) {
			s.topUp(noAnswer, 1, 10, 20)
			s.change(1, 96)
			s.win("f", "F", 1, 97, 110)
		}},
		{"a call without an answer did nothing", true, func(s *tale) { s.topUp(noAnswer, 1, 10, 20) }},
		{"sold what a call without an answer did not bring", false, func(s *tale) { s.topUp(noAnswer, 1, 10, 20); s.win("f", "F", 1, 97, 110) }},
		{"told topped up, the total never changed", false, func(s *tale) { s.topUp(topUpDone, 1, 95, 98) }},
		{"topped up twice, asked for once", false, func(s *tale) { s.topUp(topUpDone, 1, 90, 98); s.change(1, 92); s.change(1, 93) }},
		{"topped up before it was asked for", false, func(s *tale) { s.topUp(noAnswer, 1, 95, 98); s.change(1, 90) }},
		{"changed, though told that nothing was", false, func(s *tale) { s.topUp(topUpLate, 1, 90, 98); s.change(1, 92) }},
		{"a total of which no change is written", false, func(s *tale) { s.truth.total++ }},
		{"refused to take away what is promised", true, func(s *tale) { s.topUp(topUpRefused, -1, 95, 98) }},
		{"refused to take away what was there", false, func(s *tale) { s.topUp(topUpRefused, -1, 2, 5) }},
		{"took away what was there", true, func(s *tale) {
			delete(s.truth.rows, "C")
			s.truth.promised--
			s.topUp(topUpDone, -1, 95, 98)
			s.change(-1, 96)
		}},
		{"took away what was promised", false, func(s *tale) {
			s.topUp(topUpDone, -2, 95, 98)
			s.change(-2, 96)
			s.close("A", 200)
			s.close("B", 200)
		}},
		{"told PAID, never was", false, func(s *tale) {
			s.attempts = append(s.attempts, s.at("a", 50, 60, answer{Code: sale.Accepted.String(), OrderID: "A", State: "PAID"}))
		}},
	} {
		s := newTale()
		tt.tell(s)
		if why := s.check(); (why == "") != tt.good {
			t.Errorf("%s: got %q, want good: %v", tt.name, why, tt.good)
		}
	}
}

// A history as long as a drill's is checked in seconds, sold out and with closes as it is.
func TestCheckerIsQuick(t *testing.T) {
	const calls = 20_000
	rng := rand.New(rand.NewPCG(1, 2))
	s := newTale()
	s.sku.total, s.truth.total = calls/2, calls/2
	left := calls/2 - 3
	for i := range calls {
		at := 100 + i
		if left == 0 {
			break
		}
		id := fmt.Sprintf("o%d", i)
		s.win(fmt.Sprintf("b%d", i), id, 1, at, at+rng.IntN(60))
		left--
		if i%3 == 0 {
			s.close(id, at+100)
			if i > 200 {
				left++ // an order of long ago is closed by now
			}
		}
	}
	begun := time.Now()
	if why := s.check(); why != "" {
		t.Error(why)
	}
	t.Logf("%d orders checked in %v", len(s.truth.rows), time.Since(begun))
}
