package store

import (
	"maps"
	"testing"
	"time"

	"stockade/biz/sale"
)

// healthy is a server without anything to find.
func healthy() vitals {
	return vitals{
		pings: []time.Duration{time.Millisecond}, schema: 3, want: 3, opened: 4, pool: 34,
		settings: map[string]string{
			"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1",
			"max_connections": "500", "max_allowed_packet": "67108864",
		},
		connected: map[string]string{"Threads_connected": "100"},
	}
}

func TestEveryTroubleOfAServerIsFound(t *testing.T) {
	set := func(pairs ...string) func(*vitals) {
		return func(v *vitals) {
			for i := 0; i < len(pairs); i += 2 {
				v.settings[pairs[i]] = pairs[i+1]
			}
		}
	}
	for what, c := range map[string]struct {
		change func(*vitals)
		check  sale.Check
		want   sale.Level
	}{
		"healthy":              {func(*vitals) {}, sale.CheckMySQLPing, sale.LevelOK},
		"slow":                 {func(v *vitals) { v.pings = []time.Duration{pingWarn} }, sale.CheckMySQLPing, sale.LevelWarn},
		"too slow":             {func(v *vitals) { v.pings = []time.Duration{pingFail} }, sale.CheckMySQLPing, sale.LevelFail},
		"an old schema":        {func(v *vitals) { v.schema = 2 }, sale.CheckMySQLSchema, sale.LevelFail},
		"a newer schema":       {func(v *vitals) { v.schema = 4 }, sale.CheckMySQLSchema, sale.LevelWarn},
		"commits in memory":    {set("innodb_flush_log_at_trx_commit", "2"), sale.CheckMySQLDurability, sale.LevelFail},
		"binlog in memory":     {set("sync_binlog", "0"), sale.CheckMySQLDurability, sale.LevelFail},
		"no binlog":            {set("log_bin", "OFF", "sync_binlog", "0"), sale.CheckMySQLDurability, sale.LevelOK},
		"not told":             {func(v *vitals) { delete(v.settings, "innodb_flush_log_at_trx_commit") }, sale.CheckMySQLDurability, sale.LevelFail},
		"too few connections":  {set("max_connections", "33"), sale.CheckMySQLConnections, sale.LevelFail},
		"connections used up":  {set("max_connections", "129"), sale.CheckMySQLConnections, sale.LevelWarn},
		"just enough":          {set("max_connections", "130"), sale.CheckMySQLConnections, sale.LevelOK},
		"connections not told": {set("max_connections", ""), sale.CheckMySQLConnections, sale.LevelWarn},
		"small packets":        {set("max_allowed_packet", "4194304"), sale.CheckMySQLPacket, sale.LevelWarn},
		"tiny packets":         {set("max_allowed_packet", "524288"), sale.CheckMySQLPacket, sale.LevelFail},
		"rows on their way":    {func(v *vitals) { v.outbox, v.outboxAge = 9999, time.Second }, sale.CheckOutbox, sale.LevelOK},
		"an old row":           {func(v *vitals) { v.outbox, v.outboxAge = 1, 31*time.Second }, sale.CheckOutbox, sale.LevelWarn},
		"very many rows":       {func(v *vitals) { v.outbox, v.outboxAge = 10_000, time.Second }, sale.CheckOutbox, sale.LevelFail},
		"a dead letter":        {func(v *vitals) { v.dead = 1 }, sale.CheckDeadLetters, sale.LevelWarn},
		"clock ahead":          {func(v *vitals) { v.ahead = 200 * time.Millisecond }, sale.CheckMySQLClock, sale.LevelWarn},
	} {
		v := healthy()
		v.settings = maps.Clone(v.settings)
		c.change(&v)
		findings := append(judgeMySQL(v), v.judge(MySQL)...)
		if len(findings) != 8 {
			t.Errorf("%s: %d findings", what, len(findings))
		}
		for _, f := range findings {
			want := sale.LevelOK
			if f.Check == c.check {
				want = c.want
			}
			if f.Level != want || f.Seen == "" || f.Runbook == "" || (f.Do == "") != (f.Level == sale.LevelOK) {
				t.Errorf("%s: %+v, want %s", what, f, want)
			}
		}
	}
}

func TestTheFileIsFullyDurable(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Path = t.TempDir() + "/stockade.db"
	if err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range db.Diagnose(t.Context()) {
		if f.Level != sale.LevelOK {
			t.Errorf("a new file: %+v", f)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if found := db.Diagnose(t.Context()); len(found) != 1 || found[0].Level != sale.LevelFail {
		t.Errorf("a closed file: %+v", found)
	}
	for _, level := range []string{"0", "1", ""} {
		v := vitals{settings: map[string]string{"synchronous": level}}
		if found := judgeSQLite(v); found[0].Level != sale.LevelFail {
			t.Errorf("synchronous %q: %+v", level, found)
		}
	}
}
