//go:build services

package mq_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/mq/mqtest"
)

// found tells the level of a check of one queue, and what was seen.
func found(all []sale.Finding, check sale.Check, subject string) (sale.Level, string) {
	for _, f := range all {
		if f.Check == check && f.Subject == subject {
			return f.Level, f.Seen
		}
	}
	return "", ""
}

func TestDiagnoseFindsWhatIsWrongWithQueues(t *testing.T) {
	lab := mqtest.NewRabbitLab(mq.QueueQuorum)(t, func(*mq.Config) {})
	broker := lab.Open(t, mq.Deps{})
	names := mq.NamesFor(lab.Config.Prefix)
	expect := func(check sale.Check, subject string, want sale.Level, part string) {
		t.Helper()
		var all []sale.Finding
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			all = broker.Diagnose(t.Context())
			if level, seen := found(all, check, subject); level == want && strings.Contains(seen, part) {
				return
			}
		}
		t.Fatalf("want %s %s of %s with %q in %+v", check, want, subject, part, all)
	}
	expect(sale.CheckRabbitQueues, names.Create, sale.LevelOK, "") // the publisher has declared it
	expect(sale.CheckRabbitConsumers, names.Create, sale.LevelFail, "nobody")
	sub, err := broker.Subscribe(t.Context(), names.Create, 1)
	if err != nil {
		t.Fatal(err)
	}
	expect(sale.CheckRabbitConsumers, names.Create, sale.LevelOK, "1 consumers")
	sub.Close()

	lab.DeleteQueue(names.Expire)
	expect(sale.CheckRabbitQueues, names.Expire, sale.LevelFail, "missing")
	mqtest.Admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(names.Expire, true, false, false, false, amqp.Table{
			"x-queue-type": mq.QueueQuorum, "x-max-length": int64(5), "x-overflow": "drop-head",
		})
		return err
	})
	expect(sale.CheckRabbitQueues, names.Expire, sale.LevelFail, "x-")
	expect(sale.CheckRabbitQueues, names.Create, sale.LevelOK, "") // one bad queue hides no other
	expect(sale.CheckRabbitPing, "", sale.LevelOK, "p50")
}
