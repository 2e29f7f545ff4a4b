//go:build services

package mq_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/mq/mqtest"
)

// BenchmarkRelay compares the relay with one persistent message per event, each confirmed before the next is sent. Both
// write to quorum queues of the same server; the figures are events per second.
func BenchmarkRelay(b *testing.B) {
	b.Run("one-by-one", func(b *testing.B) {
		const queue = "test-bench-one-by-one"
		orders := benchOrders(1)
		body, err := mq.EncodeEnvelope(orders)
		if err != nil {
			b.Fatal(err)
		}
		mqtest.Admin(b, func(ch *amqp.Channel) error {
			if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
				return err
			}
			if err := ch.Confirm(false); err != nil {
				return err
			}
			for b.Loop() {
				dc, err := ch.PublishWithDeferredConfirm("", queue, true, false,
					amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: mq.EnvelopeType, Body: body})
				if err != nil {
					return err
				}
				if !dc.Wait() {
					b.Fatal("not confirmed")
				}
			}
			_, err := ch.QueueDelete(queue, false, false, false)
			return err
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("relay", func(b *testing.B) {
		benchRelay(b, mqtest.NewRabbitLab(mq.QueueQuorum))
	})
}

func benchRelay(b *testing.B, newLab mqtest.NewLab) {
	lab := newLab(b, func(c *mq.Config) { c.OutboxSweepAfterMs = 3_600_000 })
	counters := new(mq.Counters)
	deps := mq.Deps{Counters: counters}
	broker := lab.Open(b, deps)
	relay := mq.NewRelay(lab.Config, deps, broker, marked{mqtest.NewStore()})
	relay.Start()
	b.Cleanup(relay.Close)
	for !broker.Ready() {
		time.Sleep(time.Millisecond)
	}
	const group = 500
	orders := benchOrders(group)
	given := 0
	b.ReportAllocs()
	begin := time.Now() // not b.Elapsed: the loop stops that clock before the last events are marked
	for b.Loop() {
		// A producer that waits for room, so that nothing overflows to the sweeper.
		for uint64(given)-counters.Snapshot().Marked > uint64(lab.Config.RelayQueue-group) {
			time.Sleep(50 * time.Microsecond)
		}
		relay.Offer(slices.Clone(orders))
		given += group
	}
	for counters.Snapshot().Marked < uint64(given) {
		time.Sleep(50 * time.Microsecond)
	}
	took := time.Since(begin)
	if s := counters.Snapshot(); s.Overflowed != 0 || s.Confirmed != s.Published {
		b.Fatalf("%+v", s)
	}
	b.ReportMetric(float64(given)/took.Seconds(), "events/s")
}

func benchOrders(n int) []sale.Order {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]sale.Order, n)
	for i := range out {
		out[i] = mqtest.NewOrder(rng, uint64(i))
	}
	return out
}

// marked is an outbox that costs nothing: the broker's share is measured, not the database's.
type marked struct{ *mqtest.Store }

func (marked) MarkSent(context.Context, []sale.OrderID) error { return nil }
