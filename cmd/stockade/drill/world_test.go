//go:build services

package drill_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"stockade/biz/handler"
	"stockade/cmd/stockade/proctest"
)

// world is one installation under drill: a Redis and a database of its own, links to every server, and nodes.
type world struct {
	t     *testing.T
	name  string // of the database; prefix of keys and queues
	dir   string
	redis *proctest.Server
	db    *sql.DB
	steps int
	pace  time.Duration // a buyer's longest pause between two purchases
	rough bool          // servers break at any time, also under a reshare: its bound is not held

	toRedis, toMySQL, toRabbit *proctest.Link

	config   string           // path of the nodes' configuration
	launched []*proctest.Node // ever

	mu    sync.Mutex
	nodes []*proctest.Node
	skus  []*sku
}

// sku is one SKU of a world.
type sku struct {
	name         string
	total, limit int64
}

// newWorld starts what every drill needs but nodes. settings are lines of YAML that go into the configuration.
func newWorld(t *testing.T, settings ...string) *world {
	t.Helper()
	w := &world{t: t, name: fmt.Sprintf("drill_%d", house.worlds.Add(1)), dir: t.TempDir(), pace: usualPace}
	var err error
	if w.redis, err = proctest.NewRedis(w.dir); err != nil {
		t.Fatal(err)
	}
	w.ok(w.redis.Start())
	t.Cleanup(func() { w.ok(w.redis.StopWell()) })
	if _, err := house.db.Exec("CREATE DATABASE " + w.name); err != nil {
		t.Fatal(err)
	}
	if w.db, err = sql.Open("mysql", w.dsn(house.mysql.Addr)); err != nil {
		t.Fatal(err)
	}
	w.db.SetConnMaxIdleTime(time.Second)
	t.Cleanup(func() {
		_, err := w.db.Exec("DROP DATABASE " + w.name)
		w.ok(err)
		w.ok(w.db.Close())
	})
	w.toRedis = proctest.NewLink(t, w.redis.Addr)
	w.toMySQL = proctest.NewLink(t, house.mysql.Addr)
	w.toRabbit = proctest.NewLink(t, house.rabbit.Addr)
	w.configure([]string{w.toRedis.Addr()}, settings...)
	migrate := house.program.Command("migrate", "-c", w.config)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("stockade migrate: %v\n%s", err, out)
	}
	w.keepTotals()
	return w
}

func (w *world) dsn(addr string) string { return fmt.Sprintf("root@tcp(%s)/%s", addr, w.name) }

// configure writes the nodes' configuration: buckets wide open, sweepers as soon as drills have them, and breakers that open
// only for failures and look soon whether it got better: this machine is slow by itself. A drill about breakers has rules of
// its own, see govern.
func (w *world) configure(redis []string, settings ...string) {
	w.t.Helper()
	w.config = filepath.Join(w.dir, "serve.yaml")
	text := fmt.Sprintf(`
log: {format: json, level: info}
router: {public: "127.0.0.1:0", admin: "127.0.0.1:0"}
store: {dialect: mysql, dsn: %q}
shard: {addresses: ["%s"], prefix: %q%s}
mq: {driver: rabbit, url: %q, prefix: %q, outboxSweepAfterMs: 1000, outboxRecheckAfterMs: 2000, reconnectMaxMs: 500%s}
limiter: {globalPerSecond: 0, buyerPerSecond: 0, lanes: {slowPercent: 0, openMs: 500}, outbox: {slowPercent: 0, openMs: 500}, publish: {slowPercent: 0, openMs: 500}}
`, w.dsn(w.toMySQL.Addr()), strings.Join(redis, `", "`), w.name, section("shard", settings),
		proctest.RabbitURL(w.toRabbit.Addr()), w.name, section("mq", settings))
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// section picks the settings of a section, "mq.name: value", for a line of it.
func section(name string, settings []string) string {
	var text strings.Builder
	for _, s := range settings {
		if rest, ok := strings.CutPrefix(s, name+"."); ok {
			text.WriteString(", " + rest)
		}
	}
	return text.String()
}

// step prints what the drill does now.
func (w *world) step(format string, args ...any) {
	w.steps++
	w.t.Logf("%s  step %d: %s", time.Now().Format("15:04:05.000"), w.steps, fmt.Sprintf(format, args...))
}

// ok ends the drill when something that has to work does not.
func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error(err)
	}
}

// must is ok for what nothing can go on without.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) freePort() int {
	w.t.Helper()
	port, err := proctest.FreePort()
	w.must(err)
	return port
}

// launch starts a node and does not wait.
func (w *world) launch(settings ...string) *proctest.Node {
	w.t.Helper()
	n := proctest.Launch(w.t, house.program, fmt.Sprintf("n%d", len(w.launched)+1), w.config, settings...)
	// An operator who changes a total while things break is told that the outcome is unknown, and MySQL not of the call.
	n.Expect("adjust failed", "audit line not stored")
	w.launched = append(w.launched, n)
	return n
}

// start starts nodes side by side and waits until they are ready.
func (w *world) start(count int) {
	w.t.Helper()
	fresh := make([]*proctest.Node, count)
	for i := range fresh {
		fresh[i] = w.launch()
	}
	for _, n := range fresh {
		n.AwaitReady()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = append(w.nodes, fresh...)
}

// restart puts a new node in the place of one that is gone.
func (w *world) restart(i int) {
	w.t.Helper()
	n := w.launch()
	n.AwaitReady()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i] = n
}

func (w *world) node(i int) *proctest.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[i]
}

// any is a node, dead or alive, as a client would choose it.
func (w *world) any(rng *rand.Rand) *proctest.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[rng.IntN(len(w.nodes))]
}

// survivor is a node that runs.
func (w *world) survivor() *proctest.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.Alive() {
			return n
		}
	}
	w.t.Fatal("no node is left")
	return nil
}

// create makes a SKU that is on sale.
func (w *world) create(total, limit int64, slots int) *sku {
	w.t.Helper()
	s := &sku{name: fmt.Sprintf("%s.%d", w.name, len(w.skus)+1), total: total, limit: limit}
	w.survivor().CLI("sku", "create", s.name, "--total", strconv.FormatInt(total, 10),
		"--limit", strconv.FormatInt(limit, 10), "--slots", strconv.Itoa(slots), "--open")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skus = append(w.skus, s)
	return s
}

// shares reads what the shares of a SKU hold.
func (w *world) shares(s *sku) ([]handler.ShareJSON, error) {
	var all handler.SharesJSON
	err := w.survivor().Read("/admin/v1/skus/"+s.name+"/shares", &all)
	return all.Shares, err
}

// eventually polls until ok, and ends the drill when that takes longer than bound. It returns how long it took.
func eventually(t *testing.T, bound time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	return poll(t, 10*time.Millisecond, bound, what, ok)
}

// seldom is eventually for conditions that cost a database something to look at.
func seldom(t *testing.T, bound time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	return poll(t, 200*time.Millisecond, bound, what, ok)
}

func poll(t *testing.T, every, bound time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > bound {
			t.Fatalf("not within %v: %s", bound, what)
		}
		time.Sleep(every)
	}
	return time.Since(begun)
}

// pass lets time go by: the sale goes on meanwhile.
func pass(d time.Duration) { <-time.After(d) }
