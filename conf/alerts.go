package conf

import "slices"

// Alert is something that somebody is woken for. Each has a page in conf/runbook.
type Alert struct {
	Name    string
	Meaning string // when it fires, one line
}

// Page names the alert's page in conf/runbook.
func (a Alert) Page() string { return "alert-" + a.Name + ".md" }

// alerts is the one table of alerts.
var alerts = []Alert{
	{"RedisErrors", "more than 0.5 % of the calls to Redis failed for a minute"},
	{"RedisSlow", "one call to Redis in a hundred took longer than 100 ms for a minute"},
	{"OutboxBacklog", "more than 10 000 accepted orders wait to be published"},
	{"OutboxAge", "an accepted order has waited for more than 30 s to be published"},
	{"UnexplainedDrift", "units of a SKU are missing, or too many, after a full reshare"},
	{"DeadLetters", "a message could not be turned into an order"},
	{"BreakerOpen", "a circuit breaker is open"},
	{"ReshareLong", "a reshare has been running for more than 30 s"},
	{"StrandedUnits", "units lie in shares for more than 10 s while buyers of other shares are sent away"},
	{"FlagHitRatio", "most refusals of a sold-out SKU ask Redis instead of the node's memory"},
	{"PoolWaits", "requests wait for a connection to MySQL or Redis"},
	{"NodeDown", "a node has not answered for 30 s"},
}

// Alerts returns the table, in its order.
func Alerts() []Alert { return slices.Clone(alerts) }
