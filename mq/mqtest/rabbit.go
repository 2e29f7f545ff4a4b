//go:build services

package mqtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"stockade/biz/sale"
	"stockade/mq"
)

// URLVariable names the environment variable that holds the URL of a RabbitMQ server.
const URLVariable = "STOCKADE_TEST_AMQP"

// NewRabbitLab makes a lab on the server that STOCKADE_TEST_AMQP names, and removes it with the test.
func NewRabbitLab(queueType string) NewLab {
	return func(t testing.TB, tune func(*mq.Config)) *Lab {
		cfg := Config()
		cfg.Driver = mq.DriverRabbit
		cfg.URL = os.Getenv(URLVariable)
		cfg.Prefix = fmt.Sprintf("test-%016x", rand.Uint64())
		cfg.QueueType = queueType
		tune(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Fatalf("%s: %v", URLVariable, err)
		}
		lab := &Lab{
			Config: cfg,
			Open: func(t testing.TB, deps mq.Deps) mq.Broker {
				broker := mq.NewRabbit(cfg, deps)
				t.Cleanup(func() { _ = broker.Close() })
				return broker
			},
			DeleteQueue: func(queue string) {
				Admin(t, func(ch *amqp.Channel) error {
					_, err := ch.QueueDelete(queue, false, false, false)
					return err
				})
			},
			BindEvents: func(queue string) {
				Admin(t, func(ch *amqp.Channel) error {
					if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
						return err
					}
					return ch.QueueBind(queue, "#", mq.NamesFor(cfg.Prefix).Events, false, nil)
				})
			},
		}
		t.Cleanup(func() { removeTopology(t, lab) })
		return lab
	}
}

// Admin lets do talk to the server on a channel of its own.
func Admin(t testing.TB, do func(ch *amqp.Channel) error) {
	t.Helper()
	conn, err := amqp.Dial(os.Getenv(URLVariable))
	if err != nil {
		t.Fatalf("%s: %v", URLVariable, err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err == nil {
		err = do(ch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func removeTopology(t testing.TB, lab *Lab) {
	Admin(t, func(ch *amqp.Channel) error {
		n := mq.NamesFor(lab.Config.Prefix)
		queues := n.Queues()
		for _, window := range append(lab.Windows, sale.DefaultWindow) {
			queues = append(queues, n.Delay(window))
		}
		for _, queue := range queues {
			if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
				return err
			}
		}
		for _, exchange := range n.Exchanges() {
			if err := ch.ExchangeDelete(exchange, false, false); err != nil {
				return err
			}
		}
		return nil
	})
}
