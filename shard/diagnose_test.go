package shard

import (
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// healthy is a master without anything to find.
func healthy() vitals {
	v := vitals{
		name: "10.0.0.1:6379", pings: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond},
		info: map[string]string{
			"maxmemory_policy": "noeviction", "aof_enabled": "1", "aof_last_write_status": "ok",
			"rdb_last_bgsave_status": "ok", "connected_slaves": "1", "maxclients": "10000", "connected_clients": "40",
		},
		scripts: make([]bool, len(allScripts)),
	}
	for i := range v.scripts {
		v.scripts[i] = true
	}
	return v
}

func TestEveryTroubleOfAMasterIsFound(t *testing.T) {
	set := func(pairs ...string) func(*vitals) {
		return func(v *vitals) {
			for i := 0; i < len(pairs); i += 2 {
				v.info[pairs[i]] = pairs[i+1]
			}
		}
	}
	unset := func(name string) func(*vitals) { return func(v *vitals) { delete(v.info, name) } }
	both := func(all ...func(*vitals)) func(*vitals) {
		return func(v *vitals) {
			for _, f := range all {
				f(v)
			}
		}
	}
	snapshots := func(v *vitals) { v.save = "3600 1" }
	for what, c := range map[string]struct {
		change func(*vitals)
		check  sale.Check
		want   sale.Level
	}{
		"healthy":                {func(*vitals) {}, sale.CheckRedisPing, sale.LevelOK},
		"slow":                   {func(v *vitals) { v.pings = []time.Duration{pingWarn} }, sale.CheckRedisPing, sale.LevelWarn},
		"too slow":               {func(v *vitals) { v.pings = []time.Duration{pingFail} }, sale.CheckRedisPing, sale.LevelFail},
		"evicts":                 {set("maxmemory_policy", "allkeys-lru"), sale.CheckRedisEviction, sale.LevelFail},
		"evicts volatile keys":   {set("maxmemory_policy", "volatile-ttl"), sale.CheckRedisEviction, sale.LevelFail},
		"policy not told":        {unset("maxmemory_policy"), sale.CheckRedisEviction, sale.LevelWarn},
		"snapshots":              {both(set("aof_enabled", "0"), snapshots), sale.CheckRedisPersistence, sale.LevelOK},
		"nothing written":        {set("aof_enabled", "0"), sale.CheckRedisPersistence, sale.LevelWarn},
		"append fails":           {set("aof_last_write_status", "err"), sale.CheckRedisPersistence, sale.LevelFail},
		"snapshot fails":         {both(set("aof_enabled", "0", "rdb_last_bgsave_status", "err"), snapshots), sale.CheckRedisPersistence, sale.LevelFail},
		"CONFIG refused":         {both(set("aof_enabled", "0"), func(v *vitals) { v.saveErr = redis.Nil }), sale.CheckRedisPersistence, sale.LevelWarn},
		"no replica":             {set("connected_slaves", "0"), sale.CheckRedisReplicas, sale.LevelWarn},
		"replicas not told":      {unset("connected_slaves"), sale.CheckRedisReplicas, sale.LevelWarn},
		"few clients allowed":    {set("maxclients", "31"), sale.CheckRedisClients, sale.LevelFail},
		"clients nearly used up": {set("maxclients", "71"), sale.CheckRedisClients, sale.LevelWarn},
		"just enough clients":    {set("maxclients", "72"), sale.CheckRedisClients, sale.LevelOK},
		"clients not told":       {unset("maxclients"), sale.CheckRedisClients, sale.LevelWarn},
		"a script missing":       {func(v *vitals) { v.scripts[2] = false }, sale.CheckRedisScripts, sale.LevelWarn},
		"clock behind":           {func(v *vitals) { v.ahead = -2 * time.Second }, sale.CheckRedisClock, sale.LevelFail},
	} {
		v := healthy()
		v.info = maps.Clone(v.info)
		c.change(&v)
		findings := v.judge(32)
		if len(findings) != 7 {
			t.Errorf("%s: %d findings", what, len(findings))
		}
		for _, f := range findings {
			want := sale.LevelOK
			if f.Check == c.check {
				want = c.want
			}
			if f.Level != want || f.Subject != v.name || f.Seen == "" || f.Runbook == "" || (f.Do == "") != (f.Level == sale.LevelOK) {
				t.Errorf("%s: %+v, want %s", what, f, want)
			}
		}
	}
}
