//go:build services

package runbook_test

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/shard"
)

// drill makes what a page is about happen, and mends what the page waits for before it goes back.
type drill struct {
	make func(*site)
	mend func(*site) // nil: nothing
}

// drills are known by the names that pages give them.
var drills = map[string]drill{
	"backlog":     {make: (*site).backlog},
	"drift":       {make: (*site).drift},
	"dead-letter": {make: (*site).deadLetter},
	"node-down":   {make: func(s *site) { s.node.Kill() }},
	"paused":      {make: func(s *site) { s.cli("sku", "pause", demo) }},
	"redis-down":  {make: func(s *site) { s.server.Kill() }, mend: (*site).reviveRedis},
	"redis-evicts": {make: func(s *site) {
		s.must(s.redis.ConfigSet(s.t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	}},
	"share-lost": {make: (*site).loseShare},
	"backup":     {make: (*site).backup},
}

// reviveRedis starts Redis again, with what it had written, and waits until the node has found it.
func (s *site) reviveRedis() {
	s.must(s.server.Start())
	s.finds(sale.CheckRedisPing, sale.LevelOK, "")
}

// backlog leaves an order in the outbox that nobody publishes.
func (s *site) backlog() {
	s.cli("toggle", "set", sale.ToggleRelay, sale.WorkPauses, "--reason", "drill")
	s.buy()
}

// shareKey is a key of one slot of the demo SKU.
func (s *site) shareKey(part string) string {
	return fmt.Sprintf("%s:{%s}:%s", s.name, shard.Tag(demo, 0), part)
}

// drift gives a share units that nobody has.
func (s *site) drift() {
	s.must(s.redis.HIncrBy(s.t.Context(), s.shareKey("stock"), "left", 7).Err())
}

// loseShare takes a share away.
func (s *site) loseShare() {
	for _, part := range []string{"stock", "buyer", "order", "journal"} {
		s.must(s.redis.Del(s.t.Context(), s.shareKey(part)).Err())
	}
}

// deadLetter sends a message that cannot become an order, and names its dead letter to the page.
func (s *site) deadLetter() {
	ch, err := s.broker.Channel()
	s.must(err)
	defer ch.Close()
	names := mq.NamesFor(s.name)
	s.must(ch.PublishWithContext(s.t.Context(), names.Orders, names.Create, true, false, amqp.Publishing{
		ContentType: mq.EnvelopeType, DeliveryMode: amqp.Persistent, MessageId: fmt.Sprintf("drill-%d", s.bought), Body: []byte("poison"),
	}))
	s.bought++
	s.poll("the dead letter is recorded", func() bool {
		var page struct {
			Letters []sale.DeadLetter `json:"dead_letters"`
		}
		s.read("/admin/v1/dead?state=OPEN", &page)
		if len(page.Letters) == 0 {
			return false
		}
		s.variables["DEAD"] = strconv.FormatInt(page.Letters[0].Seq, 10)
		return true
	})
}

// backup takes one, and lets the sale go on after it: what follows is what the restored database does not know.
func (s *site) backup() {
	s.buy()
	kept := map[string]string{"BUYER": s.variables["BUYER"], "ORDER": s.variables["ORDER"]}
	s.awaitWritten()
	dump := exec.CommandContext(context.Background(), "mysqldump", "--single-transaction", "-h", s.variables["MYSQL_HOST"],
		"-P", s.variables["MYSQL_PORT"], "-u", s.variables["MYSQL_USER"], "--result-file="+s.variables["BACKUP"], s.name)
	dump.Env = s.environment()
	if out, err := dump.CombinedOutput(); err != nil {
		s.t.Fatalf("mysqldump: %v\n%s", err, out)
	}
	for range 3 {
		s.buy()
		s.cli("reshare", demo, "--full")
	}
	s.awaitWritten()
	for name, value := range kept {
		s.variables[name] = value
	}
}

// awaitWritten waits until every order has its row.
func (s *site) awaitWritten() {
	s.poll("every order is written", func() bool {
		var books sale.Books
		s.read("/admin/v1/skus/"+demo+"/books", &books)
		return books.Missing == 0
	})
}
