//go:build services

package drill_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/cmd/stockade/proctest"
)

// hashSlots is how many Redis Cluster has.
const hashSlots = 16384

// cluster is a Redis Cluster without replicas.
type cluster struct {
	masters []*proctest.Server
	links   []*proctest.Link // to each master, after announce
	prefix  string
}

// startCluster starts masters that share the hash slots evenly. They end with the test.
func startCluster(t *testing.T, w *world, size int) *cluster {
	t.Helper()
	c := &cluster{prefix: w.name}
	ctx := context.Background()
	for i := range size {
		m, err := proctest.NewRedis(w.dir, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
			"--cluster-node-timeout", "15000", "--cluster-port", strconv.Itoa(w.freePort()))
		w.must(err)
		w.must(m.Start())
		t.Cleanup(func() { w.ok(m.StopWell()) })
		c.masters = append(c.masters, m)
		client := redis.NewClient(&redis.Options{Addr: m.Addr})
		w.must(client.ClusterAddSlotsRange(ctx, i*hashSlots/size, (i+1)*hashSlots/size-1).Err())
		w.must(client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		w.ok(client.Close())
	}
	for _, m := range c.masters[1:] {
		c.meet(ctx, w, m)
	}
	for _, m := range c.masters {
		client := redis.NewClient(&redis.Options{Addr: m.Addr})
		eventually(t, 30*time.Second, "the cluster knows all its slots", func() bool {
			info, err := client.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_assigned:%d", hashSlots)) &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", size))
		})
		w.ok(client.Close())
	}
	return c
}

// meet introduces a master to the first one, by the port that it speaks to its kind on.
func (c *cluster) meet(ctx context.Context, w *world, m *proctest.Server) {
	first := redis.NewClient(&redis.Options{Addr: c.masters[0].Addr})
	defer first.Close()
	client := redis.NewClient(&redis.Options{Addr: m.Addr})
	defer client.Close()
	bus, err := client.ConfigGet(ctx, "cluster-port").Result()
	w.must(err)
	host, port, err := net.SplitHostPort(m.Addr)
	w.must(err)
	w.must(first.Do(ctx, "CLUSTER", "MEET", host, port, bus["cluster-port"]).Err())
}

func (c *cluster) addrs() (all []string) {
	for _, m := range c.masters {
		all = append(all, m.Addr)
	}
	return all
}

// slotsOf are the slots of a SKU whose keys a master holds.
func (c *cluster) slotsOf(t *testing.T, s *sku, master int) map[int]bool {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: c.masters[master].Addr})
	defer client.Close()
	slots := map[int]bool{}
	tag := c.prefix + ":{" + s.name + "."
	keys := client.Scan(context.Background(), 0, c.prefix+":*", 1000).Iterator()
	for keys.Next(context.Background()) {
		rest, ok := strings.CutPrefix(keys.Val(), tag)
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(rest, ".")
		if slot, err := strconv.Atoi(text); err == nil {
			slots[slot] = true
		}
	}
	if err := keys.Err(); err != nil || len(slots) == 0 {
		t.Fatalf("no slots of %s at master %d: %v", s.name, master+1, err)
	}
	return slots
}

// announce puts a link before every master and has the masters tell clients to come that way. It returns the links' addresses.
func (c *cluster) announce(t *testing.T, w *world) (addrs []string) {
	t.Helper()
	ctx := context.Background()
	for _, m := range c.masters {
		link := proctest.NewLink(t, m.Addr)
		_, port, err := net.SplitHostPort(link.Addr())
		w.must(err)
		client := redis.NewClient(&redis.Options{Addr: m.Addr})
		w.must(client.ConfigSet(ctx, "cluster-announce-ip", "127.0.0.1").Err())
		w.must(client.ConfigSet(ctx, "cluster-announce-port", port).Err())
		w.ok(client.Close())
		c.links = append(c.links, link)
		addrs = append(addrs, link.Addr())
	}
	for _, m := range c.masters {
		client := redis.NewClient(&redis.Options{Addr: m.Addr})
		eventually(t, 30*time.Second, "masters know each other's links", func() bool {
			nodes, err := client.ClusterNodes(ctx).Result()
			for _, addr := range addrs {
				if err != nil || !strings.Contains(nodes, addr+"@") {
					return false
				}
			}
			return true
		})
		w.ok(client.Close())
	}
	return addrs
}
