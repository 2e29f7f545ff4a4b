//go:build services

package drill_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
)

// tapLength is how many messages may wait in a tap.
const tapLength = 1_000_000

// tap has a look at everything that is published to an exchange under some keys, until the drill ends. each runs on one
// goroutine.
func (w *world) tap(exchange string, keys []string, each func(*amqp.Channel, amqp.Delivery)) {
	w.t.Helper()
	conn, err := amqp.Dial(house.rabbit.URL())
	w.must(err)
	var looking sync.WaitGroup
	w.t.Cleanup(func() {
		w.ok(conn.Close())
		looking.Wait()
	})
	ch, err := conn.Channel()
	w.must(err)
	q, err := ch.QueueDeclare("", false, true, true, false, amqp.Table{"x-max-length": tapLength})
	w.must(err)
	for _, key := range keys {
		w.must(ch.QueueBind(q.Name, key, exchange, false, nil))
	}
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	w.must(err)
	looking.Go(func() {
		for d := range deliveries {
			each(ch, d)
		}
	})
}

// repeater publishes every message about orders once more.
type repeater struct {
	mu    sync.Mutex
	times map[string]int // by queue
	wrong error
}

// repeat has each envelope, and each timeout message that is due, delivered twice.
func (w *world) repeat() *repeater {
	w.t.Helper()
	names := mq.NamesFor(w.name)
	r := &repeater{times: map[string]int{}}
	w.tap(names.Orders, []string{names.Create, names.Expire}, func(ch *amqp.Channel, d amqp.Delivery) {
		ctx, cancel := context.WithTimeout(context.Background(), askBound)
		defer cancel()
		// Straight into the queue of that name, so that the tap does not see its own.
		err := ch.PublishWithContext(ctx, "", d.RoutingKey, false, false, amqp.Publishing{
			Headers: d.Headers, ContentType: d.ContentType, MessageId: d.MessageId, DeliveryMode: amqp.Persistent, Body: d.Body,
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.times[d.RoutingKey]++
		r.wrong = firstOf(r.wrong, err)
	})
	return r
}

func (r *repeater) count(queue string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[queue]
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// notices are what downstream hears. The same notice may come twice; it has the same message id then and counts once.
type notices struct {
	mu    sync.Mutex
	seen  map[string]bool           // message ids
	about map[string]map[string]int // by topic, then by order, or, of refunds, by payment
}

// listen hears every notice that is published from now on.
func (w *world) listen() *notices {
	w.t.Helper()
	n := &notices{seen: map[string]bool{}, about: map[string]map[string]int{}}
	w.tap(mq.NamesFor(w.name).Events, []string{"#"}, func(_ *amqp.Channel, d amqp.Delivery) { n.add(d) })
	return n
}

func (n *notices) add(d amqp.Delivery) {
	var body struct {
		Orders  []sale.Order `json:"orders"`
		Payment string       `json:"payment_id"`
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen[d.MessageId] || json.Unmarshal(d.Body, &body) != nil {
		return
	}
	n.seen[d.MessageId] = true
	if n.about[d.RoutingKey] == nil {
		n.about[d.RoutingKey] = map[string]int{}
	}
	for _, o := range body.Orders {
		name := o.ID.String()
		if body.Payment != "" {
			name = body.Payment
		}
		n.about[d.RoutingKey][name]++
	}
}

// of returns how often a topic was about each order, or payment.
func (n *notices) of(topic string) map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]int{}
	for name, times := range n.about[topic] {
		all[name] = times
	}
	return all
}

// noticeBound is how long a notice may be on its way: a sweeper looks every second.
const noticeBound = 20 * time.Second

// expectOnce waits until a topic was about each of these once, and about nobody else and nobody twice.
func (w *world) expectOnce(n *notices, topic string, about []string) {
	w.t.Helper()
	begun := time.Now()
	for len(n.of(topic)) < len(about) && time.Since(begun) < noticeBound {
		pass(retryPause)
	}
	got := n.of(topic)
	for _, name := range about {
		if got[name] != 1 {
			w.t.Errorf("%s: %d notices about %s, want 1", topic, got[name], name)
		}
		delete(got, name)
	}
	for name, times := range got {
		w.t.Errorf("%s: %d notices about %s, want none", topic, times, name)
	}
	w.t.Logf("%s: %d notices, each once", topic, len(about))
}
