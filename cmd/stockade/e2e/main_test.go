//go:build services

// Package e2e_test sells through real processes: two `stockade serve` side by side on real Redis, MariaDB and RabbitMQ,
// operated by the command line and bought from over HTTP.
package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
	"stockade/mq"
)

// shop is the installation that all tests of a run share; each test has SKUs and nodes of its own.
var shop *installation

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	shop = &installation{}
	defer func() {
		if err := shop.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: left behind:", err)
			code = 1
		}
	}()
	if err := shop.install(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return m.Run()
}

// installation is one Stockade: a binary, a database, a prefix for keys and queues, and a configuration of all that.
type installation struct {
	dir     string
	program proctest.Program
	config  string // path of the file
	name    string // of the database; prefix of keys, exchanges and queues
	redis   string // host:port
	amqp    string // URL
	server  *sql.DB
	db      *sql.DB
	skus    atomic.Int64 // made so far, for their names
}

// install builds the binary with the race detector, makes the database and brings its schema up to date.
func (s *installation) install() (err error) {
	env := map[string]string{}
	for _, name := range []string{"STOCKADE_TEST_REDIS", "STOCKADE_TEST_MYSQL", "STOCKADE_TEST_AMQP"} {
		if env[name] = os.Getenv(name); env[name] == "" {
			return fmt.Errorf("%s is not set; scripts/services.sh starts the servers and prints it", name)
		}
	}
	s.redis, s.amqp = env["STOCKADE_TEST_REDIS"], env["STOCKADE_TEST_AMQP"]
	s.name = "e2e_" + uuid.NewString()[:8]
	if s.dir, err = os.MkdirTemp("", "stockade-e2e-"); err != nil {
		return err
	}
	s.program.Path = filepath.Join(s.dir, "stockade")
	build := exec.Command("go", "build", "-race", "-o", s.program.Path, "stockade/cmd/stockade")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build -race: %w\n%s", err, out)
	}
	dsn, err := mysql.ParseDSN(env["STOCKADE_TEST_MYSQL"])
	if err != nil {
		return fmt.Errorf("STOCKADE_TEST_MYSQL: %w", err)
	}
	if s.server, err = sql.Open("mysql", dsn.FormatDSN()); err != nil {
		return err
	}
	if _, err := s.server.Exec("CREATE DATABASE " + s.name); err != nil {
		return fmt.Errorf("STOCKADE_TEST_MYSQL: %w", err)
	}
	dsn.DBName = s.name
	if s.db, err = sql.Open("mysql", dsn.FormatDSN()); err != nil {
		return err
	}
	if err := s.writeConfig(dsn.FormatDSN()); err != nil {
		return err
	}
	out, err := s.program.Command("migrate", "-c", s.config).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stockade migrate: %w\n%s", err, out)
	}
	return nil
}

// writeConfig opens the buyers' buckets wide, and lets sweepers look as soon as in a drill.
func (s *installation) writeConfig(dsn string) error {
	s.config = filepath.Join(s.dir, "serve.yaml")
	text := fmt.Sprintf(`
log: {format: json, level: info}
router: {public: "127.0.0.1:0", admin: "127.0.0.1:0"}
store: {dialect: mysql, dsn: %q}
shard: {addresses: [%q], prefix: %q}
mq: {driver: rabbit, url: %q, prefix: %q, outboxSweepAfterMs: 1000, outboxRecheckAfterMs: 2000, reconnectMaxMs: 500}
limiter: {globalPerSecond: 0, buyerPerSecond: 0, lanes: {slowPercent: 0}, outbox: {slowPercent: 0}, publish: {slowPercent: 0}}
`, dsn, s.redis, s.name, s.amqp, s.name)
	return os.WriteFile(s.config, []byte(text), 0o600)
}

// remove takes everything away again, as far as it was made.
func (s *installation) remove() error {
	var errs []error
	if s.db != nil {
		_, err := s.server.Exec("DROP DATABASE " + s.name)
		errs = append(errs, err, s.db.Close(), s.server.Close(), s.removeQueues(), s.removeKeys())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *installation) removeQueues() error {
	conn, err := amqp.Dial(s.amqp)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	n := mq.NamesFor(s.name)
	var errs []error
	for _, queue := range append(n.Queues(), n.Delay(sale.DefaultWindow)) {
		_, err := ch.QueueDelete(queue, false, false, false)
		errs = append(errs, err)
	}
	for _, exchange := range n.Exchanges() {
		errs = append(errs, ch.ExchangeDelete(exchange, false, false))
	}
	return errors.Join(errs...)
}

func (s *installation) removeKeys() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	keys := client.Scan(ctx, 0, s.name+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
