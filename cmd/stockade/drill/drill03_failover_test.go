//go:build services

package drill_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/cmd/stockade/proctest"
)

// A replica that never got the last writes is promoted, and the primary is gone.
func TestDrill03LaggingReplicaIsPromoted(t *testing.T) {
	w := newWorld(t)
	w.step("two nodes, two SKUs, a replica of Redis, %d buyers", buyers)
	replication := proctest.NewLink(t, w.redis.Addr)
	host, port, err := net.SplitHostPort(replication.Addr())
	w.must(err)
	replica, err := proctest.NewRedis(w.dir, "--replicaof", host+" "+port)
	w.must(err)
	w.must(replica.Start())
	t.Cleanup(func() { w.ok(replica.StopWell()) })
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(500, 2, 8))
	c.awaitWins(100, 30*time.Second)
	client := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer client.Close()
	eventually(t, 30*time.Second, "the replica is in step", func() bool {
		info, err := client.Info(context.Background(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})

	w.step("cut the replication, and sell on")
	replication.Down()
	c.awaitWins(100, 30*time.Second)
	w.step("the primary dies, the replica is promoted, nodes are led to it")
	w.redis.Kill()
	w.must(client.ReplicaOf(context.Background(), "NO", "ONE").Err())
	w.toRedis.Lead(replica.Addr)
	c.awaitRecovery("the replica", c.h.now(), rebuildBound)
	c.awaitWins(200, 30*time.Second)

	w.step("the sale ends; audit")
	c.audit(settleBound)
}
