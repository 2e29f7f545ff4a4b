package mq

import (
	"testing"

	"stockade/biz/sale"
)

func TestEveryTroubleOfAQueueIsFound(t *testing.T) {
	names := NamesFor("stockade")
	for what, c := range map[string]struct {
		queue  string
		change func(*queueVitals)
		check  sale.Check
		want   sale.Level
	}{
		"healthy":            {names.Create, func(*queueVitals) {}, sale.CheckRabbitQueues, sale.LevelOK},
		"missing":            {names.Create, func(q *queueVitals) { q.missing = true }, sale.CheckRabbitQueues, sale.LevelFail},
		"a missing tier":     {names.Retry[1], func(q *queueVitals) { q.missing = true }, sale.CheckRabbitQueues, sale.LevelFail},
		"other arguments":    {names.Dead, func(q *queueVitals) { q.differs = "x-overflow" }, sale.CheckRabbitQueues, sale.LevelFail},
		"a backlog":          {names.Create, func(q *queueVitals) { q.messages = 10_001 }, sale.CheckRabbitQueues, sale.LevelWarn},
		"no consumer":        {names.Create, func(q *queueVitals) { q.consumers = 0 }, sale.CheckRabbitConsumers, sale.LevelFail},
		"nobody expires":     {names.Expire, func(q *queueVitals) { q.consumers = 0 }, sale.CheckRabbitConsumers, sale.LevelFail},
		"nobody buries":      {names.Dead, func(q *queueVitals) { q.consumers = 0 }, sale.CheckRabbitConsumers, sale.LevelFail},
		"tiers have nobody":  {names.Retry[0], func(q *queueVitals) { q.consumers = 0 }, sale.CheckRabbitConsumers, sale.LevelOK},
		"letters unrecorded": {names.Dead, func(q *queueVitals) { q.messages = 1 }, sale.CheckRabbitDead, sale.LevelWarn},
	} {
		var all []queueVitals
		for _, name := range names.Queues() {
			q := queueVitals{name: name, consumers: 2}
			if name == c.queue {
				c.change(&q)
			}
			all = append(all, q)
		}
		seen := map[sale.Check]bool{}
		for _, f := range judgeQueues(all, names) {
			seen[f.Check] = true
			want := sale.LevelOK
			if f.Check == c.check && f.Subject == c.queue {
				want = c.want
			}
			if f.Level != want || f.Seen == "" || f.Runbook == "" || (f.Do == "") != (f.Level == sale.LevelOK) {
				t.Errorf("%s: %+v, want %s", what, f, want)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%s: checks %v", what, seen)
		}
	}
}
