//go:build services

package drill_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/cmd/stockade/proctest"
)

// rebuildBound is how long a gate that lost something may refuse buyers after its server is back.
const rebuildBound = 5 * time.Second

// saveSnapshot has a Redis server write what it holds, and reads the file.
func saveSnapshot(t *testing.T, server *proctest.Server) []byte {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	if err := client.Save(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(server.RedisSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Redis dies with all that it held, and comes back empty; then it dies again, and comes back as it was some time before.
func TestDrill02RedisForgets(t *testing.T) {
	w := newWorld(t)
	w.step("two nodes, two SKUs, %d buyers", buyers)
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	c.awaitWins(100, 30*time.Second)

	w.step("kill -9 of redis-server; nothing was written down")
	w.redis.Kill()
	pass(span(time.Second, 10*time.Second))
	w.step("start it empty")
	w.must(w.redis.Start())
	c.awaitRecovery("Redis, emptied,", c.h.now(), rebuildBound)
	c.awaitWins(100, 30*time.Second)

	w.step("take a snapshot, sell on, kill -9, put the old snapshot back")
	old := saveSnapshot(t, w.redis)
	c.awaitWins(100, 30*time.Second)
	w.redis.Kill()
	w.must(os.WriteFile(w.redis.RedisSnapshot(), old, 0o600))
	w.must(w.redis.Start())
	c.awaitRecovery("Redis, as of some time ago,", c.h.now(), rebuildBound)
	c.awaitWins(100, 30*time.Second)

	w.step("the sale ends; audit")
	c.audit(settleBound)
}
