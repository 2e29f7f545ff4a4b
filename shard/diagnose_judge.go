package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"stockade/biz/sale"
)

// notTold is what a server is asked for and does not tell, such as one behind a proxy, or the embedded one.
const notTold = "the server does not tell"

// judge makes findings of what a master said. pool is how many connections this node may open to it.
func (v vitals) judge(pool int) []sale.Finding {
	return []sale.Finding{
		sale.CheckRedisPing.Latency(v.name, v.pings, pingWarn, pingFail,
			"look for slow commands, swapping or a saturated network: redis-cli slowlog get"),
		v.eviction(), v.persistence(), v.replicas(), v.clients(pool), v.scriptsThere(),
		sale.CheckRedisClock.Skew(v.name, v.ahead),
	}
}

// eviction: a server that evicts deletes stock when its memory is full.
func (v vitals) eviction() sale.Finding {
	const do = "redis-cli config set maxmemory-policy noeviction, and the same in redis.conf"
	switch policy := v.info["maxmemory_policy"]; policy {
	case "noeviction":
		return sale.CheckRedisEviction.OK(v.name, "maxmemory-policy noeviction")
	case "":
		return sale.CheckRedisEviction.Warn(v.name, notTold, "make sure that maxmemory-policy is noeviction")
	default:
		return sale.CheckRedisEviction.Fail(v.name, "maxmemory-policy "+policy, do)
	}
}

// persistence: without it a restart empties the gate, and every sale waits for full reshares.
func (v vitals) persistence() sale.Finding {
	aof, told := v.info["aof_enabled"]
	failed := func(field string) bool { return !slices.Contains([]string{"", "ok"}, v.info[field]) }
	switch {
	case aof == "1" && failed("aof_last_write_status"):
		return sale.CheckRedisPersistence.Fail(v.name, "appendonly, and its last write failed", "look at the disk and the log of Redis")
	case aof == "1":
		return sale.CheckRedisPersistence.OK(v.name, "appendonly")
	case v.save != "" && failed("rdb_last_bgsave_status"):
		return sale.CheckRedisPersistence.Fail(v.name, "snapshots, and the last one failed", "look at the disk and the log of Redis")
	case v.save != "":
		return sale.CheckRedisPersistence.OK(v.name, "snapshots: save "+v.save)
	case !told || v.saveErr != nil:
		return sale.CheckRedisPersistence.Warn(v.name, notTold, "make sure that appendonly or save is on")
	}
	return sale.CheckRedisPersistence.Warn(v.name, "neither appendonly nor save",
		"redis-cli config set appendonly yes, and the same in redis.conf")
}

func (v vitals) replicas() sale.Finding {
	n, err := strconv.Atoi(v.info["connected_slaves"])
	switch {
	case err != nil:
		return sale.CheckRedisReplicas.Warn(v.name, notTold, "make sure that the master has a replica")
	case n == 0:
		return sale.CheckRedisReplicas.Warn(v.name, "no replica", "add one: nobody takes over when this server dies")
	}
	return sale.CheckRedisReplicas.OK(v.name, fmt.Sprintf("%d connected", n))
}

func (v vitals) clients(pool int) sale.Finding {
	limit, err := strconv.Atoi(v.info["maxclients"])
	connected, err2 := strconv.Atoi(v.info["connected_clients"])
	if cmp.Or(err, err2) != nil {
		return sale.CheckRedisClients.Warn(v.name, notTold, "make sure that maxclients leaves room for every node's pool")
	}
	seen := fmt.Sprintf("maxclients %d, %d connected, this node's pool %d", limit, connected, pool)
	const do = "raise maxclients, or lower shard.poolSize"
	switch {
	case limit < pool:
		return sale.CheckRedisClients.Fail(v.name, seen, do)
	case limit-connected < pool:
		return sale.CheckRedisClients.Warn(v.name, seen, do)
	}
	return sale.CheckRedisClients.OK(v.name, seen)
}

func (v vitals) scriptsThere() sale.Finding {
	there := 0
	for _, ok := range v.scripts {
		if ok {
			there++
		}
	}
	seen := fmt.Sprintf("%d of %d scripts", there, len(allScripts))
	if there < len(allScripts) {
		return sale.CheckRedisScripts.Warn(v.name, seen, "nothing is lost: first calls load them; a restart of any node loads them before the sale")
	}
	return sale.CheckRedisScripts.OK(v.name, seen)
}
