//go:build services

// Package runbook_test follows the pages of conf/runbook: it runs their commands against a node on real servers and
// checks that they do what the pages say.
package runbook_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
	"stockade/mq"
)

// demo is the SKU that the pages are about.
const demo = "demo"

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stockade-runbook-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "runbook:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "stockade")
	if out, err := exec.Command("go", "build", "-o", binary, "stockade/cmd/stockade").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "runbook: go build: %v\n%s", err, out)
		return 1
	}
	if err := nameClients(dir); err != nil {
		fmt.Fprintln(os.Stderr, "runbook:", err)
		return 1
	}
	return m.Run()
}

// nameClients lets MariaDB's programs be found by the names that pages use, where MySQL's own are not installed.
func nameClients(dir string) error {
	for name, own := range map[string]string{"mysql": "mariadb", "mysqldump": "mariadb-dump"} {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		program, err := exec.LookPath(own)
		if err != nil {
			return fmt.Errorf("neither %s nor %s is installed: %w", name, own, err)
		}
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// site is one installation: a node on a Redis of its own with a replica, a database of its own, queues of its own, and
// something that answers like a Prometheus.
type site struct {
	t         *testing.T
	dir       string
	name      string // of the database; prefix of keys, exchanges and queues
	program   proctest.Program
	server    *proctest.Server // Redis
	redis     *redis.Client
	mysql     *mysql.Config
	db        *sql.DB
	broker    *amqp.Connection
	node      *proctest.Node
	variables map[string]string // what the pages may use
	requests  chan string       // what commands ask of the site: start, stop
	asked     *httptest.Server  // takes the requests
	bought    int               // orders made so far, for the names of their buyers
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		t: t, dir: t.TempDir(), name: "runbook_" + uuid.NewString()[:8], program: proctest.Program{Path: binary},
		requests: make(chan string),
	}
	s.startRedis()
	s.makeDatabase()
	s.makeQueues()
	rules := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"groups":[{"name":"stockade","rules":[{"type":"alerting"}]}]}}`))
	}))
	t.Cleanup(rules.Close)
	s.asked = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.requests <- r.URL.Path[1:]
		<-s.requests // done
	}))
	t.Cleanup(s.asked.Close)
	s.configure(rules.URL)
	s.start()
	s.cli("sku", "create", demo, "--total", "10000", "--limit", "1000")
	s.cli("sku", "load", demo)
	s.cli("sku", "open", demo)
	s.buy()
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// need reads an address from the environment.
func (s *site) need(name string) string {
	s.t.Helper()
	value := os.Getenv(name)
	if value == "" {
		s.t.Fatalf("%s is not set; scripts/services.sh starts the servers and prints it", name)
	}
	return value
}

// startRedis starts a server that keeps what it is told, and a replica of it.
func (s *site) startRedis() {
	s.t.Helper()
	var err error
	s.server, err = proctest.NewRedis(s.dir, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	s.must(err)
	s.must(s.server.Start())
	s.t.Cleanup(func() { _ = s.server.StopWell() })
	host, port := split(s.server.Addr)
	replica, err := proctest.NewRedis(s.dir, "--replicaof", host+" "+port)
	s.must(err)
	s.must(replica.Start())
	s.t.Cleanup(func() { _ = replica.StopWell() })
	s.redis = redis.NewClient(&redis.Options{Addr: s.server.Addr})
	s.t.Cleanup(func() { _ = s.redis.Close() })
}

func (s *site) makeDatabase() {
	s.t.Helper()
	var err error
	s.mysql, err = mysql.ParseDSN(s.need("STOCKADE_TEST_MYSQL"))
	s.must(err)
	server, err := sql.Open("mysql", s.mysql.FormatDSN())
	s.must(err)
	_, err = server.Exec("CREATE DATABASE " + s.name)
	s.must(err)
	s.t.Cleanup(func() {
		_, err := server.Exec("DROP DATABASE " + s.name)
		if err = errors.Join(err, server.Close()); err != nil {
			s.t.Errorf("left behind: %v", err)
		}
	})
	s.mysql.DBName = s.name
	s.db, err = sql.Open("mysql", s.mysql.FormatDSN())
	s.must(err)
	s.t.Cleanup(func() { _ = s.db.Close() })
}

// makeQueues connects to the broker; the node declares the queues.
func (s *site) makeQueues() {
	s.t.Helper()
	var err error
	s.broker, err = amqp.Dial(s.need("STOCKADE_TEST_AMQP"))
	s.must(err)
	s.t.Cleanup(func() {
		ch, err := s.broker.Channel()
		if err == nil {
			names := mq.NamesFor(s.name)
			for _, queue := range append(names.Queues(), names.Delay(sale.DefaultWindow)) {
				_, gone := ch.QueueDelete(queue, false, false, false)
				err = errors.Join(err, gone)
			}
			for _, exchange := range names.Exchanges() {
				err = errors.Join(err, ch.ExchangeDelete(exchange, false, false))
			}
		}
		if err = errors.Join(err, s.broker.Close()); err != nil {
			s.t.Errorf("left behind: %v", err)
		}
	})
}

// configure writes the configuration, brings the schema up to date, makes the first admin token, and tells the pages
// where everything is.
func (s *site) configure(rules string) {
	s.t.Helper()
	in := func(name string) string { return filepath.Join(s.dir, name) }
	ports := [2]int{}
	for i := range ports {
		var err error
		ports[i], err = proctest.FreePort()
		s.must(err)
	}
	host, port := split(s.server.Addr)
	dbHost, dbPort := split(s.mysql.Addr)
	s.variables = map[string]string{
		"SKU":                             demo,
		"STOCKADE_PUBLIC_URL":             fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		"STOCKADE_ADMIN_URL":              fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		"STOCKADE_AUTH_ADMIN_TOKENS_FILE": in("admin-tokens.yaml"),
		"TOGGLES_FILE":                    in("toggles.yaml"),
		"BACKUP":                          in("backup.sql"),
		"REDIS_HOST":                      host, "REDIS_PORT": port, "REDIS_PREFIX": s.name,
		"MYSQL_HOST": dbHost, "MYSQL_PORT": dbPort, "MYSQL_USER": s.mysql.User, "MYSQL_PWD": s.mysql.Passwd,
		"MYSQL_DATABASE": s.name,
		"PROMETHEUS_URL": rules,
		"START_NODES":    "curl -fsS " + s.asked.URL + "/start",
		"STOP_NODES":     "curl -fsS " + s.asked.URL + "/stop",
	}
	text := fmt.Sprintf(`
log: {format: json, level: info}
router: {public: "127.0.0.1:%d", admin: "127.0.0.1:%d"}
store: {dialect: mysql, dsn: %q, maxWriters: 4, settleWriters: 1, maxReaders: 6}
shard: {addresses: [%q], prefix: %q}
mq: {driver: rabbit, url: %q, prefix: %q, outboxSweepAfterMs: 500, outboxRecheckAfterMs: 2000, reconnectMaxMs: 500,
  retry1Ms: 50, retry2Ms: 50, retry3Ms: 50}
limiter: {globalPerSecond: 0, buyerPerSecond: 0}
service: {deadLetters: manual}
toggles: {file: %q}
doctor: {prometheusURL: %q}
auth: {adminTokensFile: %q}
`, ports[0], ports[1], s.mysql.FormatDSN(), s.server.Addr, s.name, s.need("STOCKADE_TEST_AMQP"), s.name,
		s.variables["TOGGLES_FILE"], rules, s.variables["STOCKADE_AUTH_ADMIN_TOKENS_FILE"])
	s.must(os.WriteFile(in("serve.yaml"), []byte(text), 0o600))
	if out, err := s.program.Command("migrate", "-c", in("serve.yaml")).CombinedOutput(); err != nil {
		s.t.Fatalf("stockade migrate: %v\n%s", err, out)
	}
	var made struct{ Token string }
	s.must(json.Unmarshal(s.cli("token", "create", "harness", "--role", "admin"), &made))
	s.variables["STOCKADE_ADMIN_TOKEN"] = made.Token
}
