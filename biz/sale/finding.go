package sale

import (
	"fmt"
	"slices"
	"time"
)

// Level is how bad a finding is.
type Level string

// The levels, the best first.
const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warn" // the sale works, and should not stay like this
	LevelFail Level = "fail" // do not open a sale like this
)

// Worse tells whether l is worse than other.
func (l Level) Worse(other Level) bool { return l.rank() > other.rank() }

func (l Level) rank() int { return slices.Index([]Level{LevelOK, LevelWarn, LevelFail}, l) }

// Finding is what one check of an installation saw.
type Finding struct {
	Check   Check  `json:"check"`
	Level   Level  `json:"level"`
	Subject string `json:"subject,omitempty"` // a server, a queue, a SKU, a toggle; empty where there is one only
	Seen    string `json:"seen"`
	Do      string `json:"do,omitempty"` // of warn and fail
	Runbook string `json:"runbook"`      // page in conf/runbook
}

// Check is the stable name of a check.
type Check string

// The checks.
const (
	CheckRedisPing        Check = "redis.ping"
	CheckRedisEviction    Check = "redis.eviction"
	CheckRedisPersistence Check = "redis.persistence"
	CheckRedisReplicas    Check = "redis.replicas"
	CheckRedisClients     Check = "redis.clients"
	CheckRedisScripts     Check = "redis.scripts"
	CheckRedisClock       Check = "redis.clock"
	CheckMySQLPing        Check = "mysql.ping"
	CheckMySQLSchema      Check = "mysql.schema"
	CheckMySQLDurability  Check = "mysql.durability"
	CheckMySQLConnections Check = "mysql.connections"
	CheckMySQLPacket      Check = "mysql.packet"
	CheckMySQLClock       Check = "mysql.clock"
	CheckRabbitPing       Check = "rabbitmq.ping"
	CheckRabbitQueues     Check = "rabbitmq.queues"
	CheckRabbitConsumers  Check = "rabbitmq.consumers"
	CheckRabbitDead       Check = "rabbitmq.dead"
	CheckSKU              Check = "sku.state"
	CheckSharePlacement   Check = "sku.placement"
	CheckShareStock       Check = "sku.stock"
	CheckOutbox           Check = "outbox.waiting"
	CheckDeadLetters      Check = "dead.open"
	CheckToggles          Check = "toggles.default"
	CheckAdminTokens      Check = "tokens.expiry"
	CheckAlertRules       Check = "alerts.rules"
)

// CheckPages names the page of conf/runbook of every check. A finding about a toggle names the toggle's own page.
var CheckPages = map[Check]string{
	CheckRedisPing: "check-redis.md", CheckRedisEviction: "check-redis.md", CheckRedisPersistence: "check-redis.md",
	CheckRedisReplicas: "check-redis.md", CheckRedisClients: "check-redis.md", CheckRedisScripts: "check-redis.md",
	CheckRedisClock: "check-clock.md",
	CheckMySQLPing:  "check-mysql.md", CheckMySQLSchema: "check-mysql.md", CheckMySQLDurability: "check-mysql.md",
	CheckMySQLConnections: "check-mysql.md", CheckMySQLPacket: "check-mysql.md",
	CheckMySQLClock: "check-clock.md",
	CheckRabbitPing: "check-rabbitmq.md", CheckRabbitQueues: "check-rabbitmq.md", CheckRabbitConsumers: "check-rabbitmq.md",
	CheckRabbitDead: "alert-DeadLetters.md",
	CheckSKU:        "check-shares.md", CheckSharePlacement: "check-shares.md", CheckShareStock: "check-shares.md",
	CheckOutbox: "alert-OutboxBacklog.md", CheckDeadLetters: "alert-DeadLetters.md",
	CheckToggles: "README.md", CheckAdminTokens: "check-tokens.md", CheckAlertRules: "check-alerts.md",
}

// OK is a finding with nothing to do.
func (c Check) OK(subject, seen string) Finding {
	return Finding{Check: c, Level: LevelOK, Subject: subject, Seen: seen, Runbook: CheckPages[c]}
}

// Warn is a finding that should not stay as it is.
func (c Check) Warn(subject, seen, do string) Finding {
	return Finding{Check: c, Level: LevelWarn, Subject: subject, Seen: seen, Do: do, Runbook: CheckPages[c]}
}

// Fail is a finding that forbids a sale.
func (c Check) Fail(subject, seen, do string) Finding {
	return Finding{Check: c, Level: LevelFail, Subject: subject, Seen: seen, Do: do, Runbook: CheckPages[c]}
}

// Bounds of a clock's difference from this node's.
const (
	skewWarn = 100 * time.Millisecond
	skewFail = time.Second
)

// Skew judges how far a server's clock is ahead of this node's; below 0 it is behind.
func (c Check) Skew(subject string, ahead time.Duration) Finding {
	seen := fmt.Sprintf("%v ahead of this node", ahead.Round(time.Millisecond))
	const do = "synchronise the clocks: chronyc tracking on both machines"
	switch off := ahead.Abs(); {
	case off > skewFail:
		return c.Fail(subject, seen, do)
	case off > skewWarn:
		return c.Warn(subject, seen, do)
	}
	return c.OK(subject, seen)
}

// Latency judges round trips by their median. At warn and above they are a warning, at fail and above a failure. took
// is not empty.
func (c Check) Latency(subject string, took []time.Duration, warn, fail time.Duration, do string) Finding {
	sorted := slices.Sorted(slices.Values(took))
	p50 := sorted[len(sorted)/2]
	seen := fmt.Sprintf("p50 %v of %d round trips", p50.Round(time.Microsecond), len(took))
	switch {
	case p50 >= fail:
		return c.Fail(subject, seen, do)
	case p50 >= warn:
		return c.Warn(subject, seen, do)
	}
	return c.OK(subject, seen)
}
