//go:build services

package drill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
	"stockade/mq"
)

const poisoned = 6 // orders whose events are spoilt at once

// crashPoint is a point and what brings a node there. A sale in which orders are paid, cancelled and expire passes most
// of them by itself.
type crashPoint struct {
	point         sale.Point
	both          bool // the other node has to be there
	before, after func(w *walk, s *stall)
	drive         func(w *walk, s *stall, n *proctest.Node)
	patience      time.Duration // before it is driven again
}

// points are all of them, with the close-out, which needs SKUs that are over, at the end.
func (w *walk) points() (all []crashPoint) {
	for _, p := range sale.Points {
		c := crashPoint{point: p}
		switch p {
		case sale.SweepClaimed:
			c.drive, c.patience = (*walk).holdRelay, 3*time.Second
		case sale.RetryPublished, sale.DeadLetterRecorded, sale.DeadLetterCompensated:
			c.drive, c.after, c.patience = (*walk).poison, (*walk).freeRelay, 2*time.Second
		case sale.JournalDecided, sale.JournalCarried:
			c.both, c.drive, c.after, c.patience = true, (*walk).leaveUndecided, (*walk).disarm, 6*time.Second
			if p == sale.JournalCarried {
				c.before = (*walk).underJournal
			}
		case sale.ReshareRaised, sale.ReshareSealed, sale.ReshareLaid, sale.ReshareOpened, sale.ReshareFinished:
			c.drive, c.patience = (*walk).reshareNow, time.Second
		case sale.CloseoutSealed, sale.CloseoutReported, sale.CloseoutDropped:
			c.before, c.drive, c.after, c.patience = (*walk).chooseFinished, (*walk).closeOut, (*walk).finishCloseOut, time.Second
		}
		all = append(all, c)
	}
	return all
}

// holdRelay keeps the relay from what is accepted now, until it is left to the sweepers. The node may die meanwhile.
func (w *walk) holdRelay(s *stall, n *proctest.Node) {
	w.pauseRelay(n)
	s.awaitWins(w, winsBefore, reachBound)
	w.freeRelay(s)
}

// pauseRelay tells one node, which tells the others.
func (w *walk) pauseRelay(n *proctest.Node) {
	_, err := w.market.operate(n, http.MethodPut, "/admin/v1/toggles/"+sale.ToggleRelay, toggleTo(sale.WorkPauses, ""))
	if err != nil && n.Alive() {
		w.t.Logf("relay not paused: %v", err)
	}
}

func (w *walk) freeRelay(*stall) {
	w.market.must(http.MethodPut, "/admin/v1/toggles/"+sale.ToggleRelay, toggleTo(sale.WorkRuns, ""))
}

func toggleTo(value, scope string) map[string]string {
	return map[string]string{"value": value, "scope": scope, "reason": "crash points"}
}

// poison holds the relay, and publishes events that nobody can write in place of those of some orders.
func (w *walk) poison(s *stall, n *proctest.Node) {
	w.t.Helper()
	w.pauseRelay(n)
	var bad []sale.Order
	eventually(w.t, reachBound, "orders to be poisoned", func() (enough bool) {
		bad = w.queued(s, poisoned)
		return len(bad) == poisoned
	})
	conn, err := amqp.Dial(proctest.RabbitURL(house.rabbit.Addr))
	w.must(err)
	defer conn.Close()
	ch, err := conn.Channel()
	w.must(err)
	w.must(ch.Confirm(false))
	names := mq.NamesFor(w.name)
	for _, o := range bad {
		body, err := json.Marshal(map[string]any{"orders": []sale.Order{o}})
		w.must(err)
		confirm, err := ch.PublishWithDeferredConfirm(names.Orders, names.Create, true, false, amqp.Publishing{
			ContentType: mq.EnvelopeType, DeliveryMode: amqp.Persistent, MessageId: "poison-" + o.ID.String(), Body: body,
		})
		w.must(err)
		ctx, cancel := context.WithTimeout(context.Background(), reachBound)
		if taken, err := confirm.WaitContext(ctx); err != nil || !taken {
			w.t.Errorf("RabbitMQ did not take the poison of order %s: %v", o.ID, err)
		}
		cancel()
	}
}

// queued finds orders of a stall that nobody has published, and spoils them: none has a quantity.
func (w *walk) queued(s *stall, limit int) (all []sale.Order) {
	w.t.Helper()
	rows, err := w.db.Query(`SELECT o.id, o.buyer, o.created_at, o.expires_at FROM outbox o
		LEFT JOIN orders r ON r.buyer = o.buyer AND r.id = o.id
		WHERE o.sku = ? AND o.state = 0 AND r.id IS NULL ORDER BY o.seq DESC LIMIT ?`, s.sku.name, limit)
	w.must(err)
	defer rows.Close()
	for rows.Next() {
		o := sale.Order{SKU: s.sku.name, State: sale.OrderQueued}
		var id []byte
		var accepted, expires int64
		w.must(rows.Scan(&id, &o.Buyer, &accepted, &expires))
		copy(o.ID[:], id)
		o.AcceptedAt, o.ExpiresAt = time.UnixMilli(accepted).UTC(), time.UnixMilli(expires).UTC()
		all = append(all, o)
	}
	w.must(rows.Err())
	return all
}

// underJournal has the stall's purchases accepted after the admission.
func (w *walk) underJournal(s *stall) {
	s.eager.Store(true)
	w.market.must(http.MethodPut, "/admin/v1/toggles/"+sale.ToggleDurability, toggleTo(sale.DurabilityJournal, s.sku.name))
}

// leaveUndecided has purchases fail on the other node right behind the gate, so that their takes are for the sweepers,
// those of both nodes, to decide.
func (w *walk) leaveUndecided(_ *stall, n *proctest.Node) {
	for i := range w.nodes {
		if other := w.node(i); other != n {
			w.arm(other, proctest.Fault{Point: sale.PurchaseAdmitted, Action: proctest.FaultError, Count: 1000})
		}
	}
}

func (w *walk) disarm(*stall) {
	for i := range w.nodes {
		if n := w.node(i); n.Alive() {
			w.arm(n, proctest.Fault{Point: sale.PurchaseAdmitted, Action: proctest.FaultError})
		}
	}
}

// reshareNow asks a node for a reshare, full every other time. It may die of that.
func (w *walk) reshareNow(s *stall, n *proctest.Node) {
	_, err := w.market.operate(n, http.MethodPost, "/admin/v1/skus/"+s.sku.name+"/reshare",
		map[string]bool{"full": s.action != proctest.FaultError})
	if err != nil && n.Alive() {
		w.t.Logf("reshare: %v", err)
	}
}

func (s *stall) String() string { return fmt.Sprintf("%s (%s at %s)", s.sku.name, s.action, s.point) }
