package mq_test

import (
	"context"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/mq/mqtest"
)

// written is a store that costs nothing.
type written struct{}

func (written) InsertOrders(context.Context, []sale.Order) ([]error, error) { return nil, nil }

// BenchmarkConsume is the consumers' own share: receive, decode, check, ack. One operation is an envelope of 100 orders.
func BenchmarkConsume(b *testing.B) {
	lab := mqtest.NewMemoryLab(b, func(*mq.Config) {})
	deps := mq.Deps{Counters: new(mq.Counters)}
	broker := lab.Open(b, deps)
	names := mq.NamesFor(lab.Config.Prefix)
	body, err := mq.EncodeEnvelope(someOrders(mq.MaxEnvelopeOrders))
	if err != nil {
		b.Fatal(err)
	}
	consumers := mq.NewConsumers(lab.Config, deps, broker, written{})
	consumers.Start()
	b.Cleanup(consumers.Close)
	b.ReportAllocs()
	begin := time.Now()
	for b.Loop() {
		broker.Publish(context.Background(), mq.Message{
			Exchange: names.Orders, Key: names.Create, ContentType: mq.EnvelopeType, Body: body,
		}, func(o mq.Outcome) {
			if o != mq.Confirmed {
				time.Sleep(100 * time.Microsecond) // the queue is full: wait for the consumers
			}
		})
	}
	confirmed := deps.Counters.Snapshot().Confirmed
	for deps.Counters.Snapshot().Consumed < confirmed*mq.MaxEnvelopeOrders {
		time.Sleep(50 * time.Microsecond)
	}
	b.ReportMetric(float64(confirmed*mq.MaxEnvelopeOrders)/time.Since(begin).Seconds(), "events/s")
}
