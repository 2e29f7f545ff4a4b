package store

import (
	"fmt"
	"strconv"
	"time"

	"stockade/biz/sale"
)

// What waits is judged by these bounds.
const (
	outboxFail   = 10_000           // rows
	outboxOld    = 30 * time.Second // the sweepers have had their turn
	packetWarn   = 16 << 20         // bytes; a group of promises is cut into a quarter of it
	packetFail   = 1 << 20          // bytes; below it a dead letter may not fit
	fullyDurable = "2"              // PRAGMA synchronous FULL
)

// judge makes findings of what every database has.
func (v vitals) judge(name string) []sale.Finding {
	return []sale.Finding{
		sale.CheckMySQLPing.Latency(name, v.pings, pingWarn, pingFail, "look for a saturated disk or network, and for long transactions"),
		v.judgeSchema(name), v.judgeOutbox(), v.judgeDead(),
		sale.CheckMySQLClock.Skew(name, v.ahead),
	}
}

func (v vitals) judgeSchema(name string) sale.Finding {
	seen := fmt.Sprintf("version %d, this build has %d", v.schema, v.want)
	switch {
	case v.schema < v.want:
		return sale.CheckMySQLSchema.Fail(name, seen, "stockade migrate")
	case v.schema > v.want:
		return sale.CheckMySQLSchema.Warn(name, seen, "bring this node up to the build that migrated the schema")
	}
	return sale.CheckMySQLSchema.OK(name, seen)
}

func (v vitals) judgeOutbox() sale.Finding {
	seen := fmt.Sprintf("%s accepted orders wait to be published", counted(v.outbox))
	if v.outbox > 0 {
		seen += fmt.Sprintf(", the oldest for %v", v.outboxAge.Round(time.Second))
	}
	const do = "look at RabbitMQ and at the toggle relay"
	switch {
	case v.outbox >= outboxFail:
		return sale.CheckOutbox.Fail("", seen, do)
	case v.outbox > 0 && v.outboxAge > outboxOld:
		return sale.CheckOutbox.Warn("", seen, do)
	}
	return sale.CheckOutbox.OK("", seen)
}

func (v vitals) judgeDead() sale.Finding {
	seen := counted(v.dead) + " dead letters are open"
	if v.dead > 0 {
		return sale.CheckDeadLetters.Warn("", seen, "stockade dead list --state OPEN")
	}
	return sale.CheckDeadLetters.OK("", seen)
}

func counted(n int) string {
	if n >= maxWaitingCount {
		return fmt.Sprintf("more than %d", maxWaitingCount-1)
	}
	return strconv.Itoa(n)
}

// judgeMySQL makes findings of a server's settings.
func judgeMySQL(v vitals) []sale.Finding {
	return []sale.Finding{v.judgeDurability(), v.judgeConnections(), v.judgePacket()}
}

// judgeDurability: an accepted order that a power cut takes back is an order lost, or a unit sold twice.
func (v vitals) judgeDurability() sale.Finding {
	flush, binlog, sync := v.settings["innodb_flush_log_at_trx_commit"], v.settings["log_bin"], v.settings["sync_binlog"]
	seen := "innodb_flush_log_at_trx_commit " + flush
	var do string
	if flush != "1" {
		do = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in the server's file"
	}
	if binlog == "ON" {
		seen += ", sync_binlog " + sync
		if sync != "1" && do == "" {
			do = "SET GLOBAL sync_binlog = 1, and the same in the server's file"
		}
	} else {
		seen += ", no binlog"
	}
	if do != "" {
		return sale.CheckMySQLDurability.Fail(MySQL, seen, do)
	}
	return sale.CheckMySQLDurability.OK(MySQL, seen)
}

// judgeConnections leaves room for what this node has not opened yet.
func (v vitals) judgeConnections() sale.Finding {
	limit, err := strconv.Atoi(v.settings["max_connections"])
	if err != nil {
		return sale.CheckMySQLConnections.Warn(MySQL, "the server does not tell", "make sure that max_connections leaves room for every node's pools")
	}
	connected, _ := strconv.Atoi(v.connected["Threads_connected"]) // 0 when it does not tell
	seen := fmt.Sprintf("max_connections %d, %d connected, %d of this node's pools of %d", limit, connected, v.opened, v.pool)
	const do = "raise max_connections, or lower store.maxWriters and store.maxReaders"
	switch {
	case limit < v.pool:
		return sale.CheckMySQLConnections.Fail(MySQL, seen, do)
	case limit-connected < v.pool-v.opened:
		return sale.CheckMySQLConnections.Warn(MySQL, seen, do)
	}
	return sale.CheckMySQLConnections.OK(MySQL, seen)
}

func (v vitals) judgePacket() sale.Finding {
	size, err := strconv.Atoi(v.settings["max_allowed_packet"])
	seen := fmt.Sprintf("max_allowed_packet %d bytes", size)
	const do = "SET GLOBAL max_allowed_packet = 16777216, the same in the server's file, and restart the nodes"
	switch {
	case err != nil:
		return sale.CheckMySQLPacket.Warn(MySQL, "the server does not tell", do)
	case size < packetFail:
		return sale.CheckMySQLPacket.Fail(MySQL, seen, do)
	case size < packetWarn:
		return sale.CheckMySQLPacket.Warn(MySQL, seen, do)
	}
	return sale.CheckMySQLPacket.OK(MySQL, seen)
}

// judgeSQLite makes a finding of what every connection of the file is opened with.
func judgeSQLite(v vitals) []sale.Finding {
	seen := "synchronous " + v.settings["synchronous"]
	if v.settings["synchronous"] != fullyDurable {
		return []sale.Finding{sale.CheckMySQLDurability.Fail(SQLite, seen, "this build opens the file wrongly: use another one")}
	}
	return []sale.Finding{sale.CheckMySQLDurability.OK(SQLite, seen)}
}
