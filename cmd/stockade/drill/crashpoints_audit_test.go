//go:build services

package drill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cmd/stockade/proctest"
)

// stallBound is how long after its sale a stall may take until all its orders are PAID or CLOSED, and all their units are
// where they belong: the payment window, the sweepers' ages, and the steps of other sales before somebody looks. Other nodes
// die meanwhile.
const stallBound = 30 * time.Second

// auditRipe audits the sales that are over and settled.
func (w *walk) auditRipe() {
	w.t.Helper()
	var unripe []*stall
	for _, s := range w.ripe {
		tr, why := w.look(s)
		since := time.Since(s.ended)
		switch {
		case why == "":
			w.slowest = max(w.slowest, since)
			s.truth = tr
			w.audit(s, since)
			w.audited = append(w.audited, s)
		case s.ended.IsZero() || since < stallBound:
			unripe = append(unripe, s)
		default:
			w.t.Fatalf("%v: not settled %v after its sale: %s", s, since.Round(time.Millisecond), why)
		}
	}
	w.ripe = unripe
}

// look reads a stall, and says why it is not settled.
func (w *walk) look(s *stall) (tr truth, why string) {
	if w.market.current.Load() == s || s.busy.Load() > 0 {
		return tr, "buyers are still there"
	}
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	tr, err := w.truth(s.sku)
	if err != nil {
		return tr, err.Error()
	}
	for id, r := range tr.rows {
		if r.state != sale.OrderPaid && r.state != sale.OrderClosed {
			return tr, fmt.Sprintf("order %s is %s", id, r.state)
		}
		if (r.state == sale.OrderClosed) != (r.closed != 0) {
			return tr, fmt.Sprintf("order %s is %s, its outbox row is not", id, r.state)
		}
	}
	shares, err := w.shares(s.sku)
	if err != nil {
		return tr, err.Error()
	}
	return tr, tr.unsettled(shares)
}

// audit holds what is written of a stall against what its buyers were told. The walk ends at the first that does not agree.
func (w *walk) audit(s *stall, since time.Duration) {
	w.t.Helper()
	attempts := w.market.attemptsOf(s.sku)
	f := w.market.compare(s.sku, s.truth, attempts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, state := range s.told {
		if got := s.truth.rows[id].state; got != state {
			f.lost++
			w.t.Errorf("%v: order %s was told %s and is %s", s, id, state, got)
		}
	}
	for _, wrong := range s.wrong {
		w.t.Errorf("%v: %s", s, wrong)
	}
	w.t.Logf("audit of %s at %s, %v later: %d calls, %d orders acknowledged, %d others of unknown outcome, %d told paid or closed; lost %d, "+
		"unexplained %d, duplicate %d, oversold %d, over-limit %d, drift %d", s.action, s.point, since.Round(time.Millisecond), f.attempts, f.acknowledged,
		f.unknown, len(s.told), f.lost, f.unexplained, f.duplicate, f.oversold, f.overLimit, f.drift)
	if f.lost+f.unexplained+f.duplicate+f.oversold+f.overLimit != 0 || f.drift != 0 || w.t.Failed() {
		w.t.Fatalf("%v: the audit failed: %+v", s, f)
	}
	if why := checkHistory(s.sku, operations(s.sku, w.market.h.began, attempts, s.truth)); why != "" {
		w.t.Fatalf("%v: %s", s, why)
	}
}

// chooseFinished closes the oldest stall that was audited: it is to be closed out.
func (w *walk) chooseFinished(*stall) {
	w.t.Helper()
	seldom(w.t, 2*stallBound, "a sale is audited", func() bool { w.auditRipe(); return len(w.audited) > 0 })
	w.market.must(http.MethodPost, "/admin/v1/skus/"+w.audited[0].sku.name+"/close", nil)
}

// closeOut asks a node for the close-out. It may die of that.
func (w *walk) closeOut(_ *stall, n *proctest.Node) {
	_, err := w.market.operate(n, http.MethodPost, "/admin/v1/skus/"+w.audited[0].sku.name+"/closeout", nil)
	if err != nil && n.Alive() {
		w.t.Logf("close-out: %v", err)
	}
}

// finishCloseOut asks again, and checks what a close-out leaves behind: a report that agrees with the last audit, order
// rows, an archive, and no keys.
func (w *walk) finishCloseOut(*stall) {
	w.t.Helper()
	done := w.audited[0]
	w.audited = w.audited[1:]
	name, tr := done.sku.name, done.truth
	var report service.CloseoutReport
	w.must(json.Unmarshal(w.market.must(http.MethodPost, "/admin/v1/skus/"+name+"/closeout", nil), &report))
	if report.Books.Total != tr.total || report.Books.Promised != tr.promised || report.Books.Sold != tr.promised ||
		report.Unsold != tr.total-tr.promised || report.Left != report.Unsold {
		w.t.Errorf("%s: report %+v, want total %d, promised and sold %d", name, report, tr.total, tr.promised)
	}
	var live, archived, orders int
	w.must(w.db.QueryRow(`SELECT (SELECT COUNT(*) FROM outbox WHERE sku = ?), (SELECT COUNT(*) FROM outbox_archive WHERE sku = ?),
		(SELECT COUNT(*) FROM orders WHERE sku = ?)`, name, name, name).Scan(&live, &archived, &orders))
	if live != 0 || archived != len(tr.rows) || orders != len(tr.rows) {
		w.t.Errorf("%s: %d outbox rows, %d archived, %d orders; want 0, %d, %d", name, live, archived, orders, len(tr.rows), len(tr.rows))
	}
	client := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	defer client.Close()
	keys, err := client.Keys(context.Background(), w.name+":{"+name+".*").Result()
	if err != nil || len(keys) != 0 {
		w.t.Errorf("%s: keys %v are left, error %v", name, keys, err)
	}
}
