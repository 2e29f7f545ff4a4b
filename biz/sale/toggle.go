package sale

import "time"

// Toggle is an operator's switch as it is stored.
type Toggle struct {
	Name      string    `json:"name"`
	Scope     string    `json:"scope,omitempty"` // a SKU; empty: all
	Value     string    `json:"value"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	Until     time.Time `json:"until,omitzero"` // zero: until it is changed
	ChangedAt time.Time `json:"changed_at,omitzero"`
}

// Toggles by name.
const (
	ToggleEntrance    = "entrance"     // open, closed: closed answers every purchase with NOT_ON_SALE, PAUSED
	TogglePath        = "path"         // redis, mysql: the way of purchases, which is kept in the ledgers
	ToggleDurability  = "durability"   // outbox: ACCEPTED after the commit; journal: after the admission
	ToggleFallback    = "fallback"     // on, off: whether a buyer whose slot is empty may ask the reserve
	ToggleSoldoutFlag = "soldout_flag" // on, off: refusals from the node's memory
	ToggleStockRead   = "stock_read"   // live, frozen: what the public is told of a SKU's stock
	ToggleRateScale   = "rate_scale"   // percent of what the buckets let through
	ToggleReshare     = "reshare"      // run, pause: the automatic reshares
	ToggleExpiry      = "expiry"       // run, pause: closing orders whose payment window ended
	ToggleRelay       = "relay"        // run, pause: publishing
	ToggleConsumer    = "consumer"     // run, pause: writing orders

	// ToggleBreaker begins the name of a breaker's toggle: auto, open, closed.
	ToggleBreaker = "breaker."
)

// Breakers by name, behind ToggleBreaker. BreakerLane begins the name of the breaker of one Redis master's lane and is
// followed by its host:port; what is set for BreakerLanes holds for those that have no value of their own.
const (
	BreakerLanes    = "lanes"
	BreakerOutbox   = "outbox"
	BreakerPublish  = "publish"
	BreakerBacklog  = "backlog"
	BreakerAdaptive = "adaptive"
	BreakerLane     = "lane."
)

// Values of toggles.
const (
	EntranceOpen      = "open"
	EntranceClosed    = "closed"
	DurabilityOutbox  = "outbox"
	DurabilityJournal = "journal"
	SwitchOn          = "on"
	SwitchOff         = "off"
	StockLive         = "live"
	StockFrozen       = "frozen"
	WorkRuns          = "run"
	WorkPauses        = "pause"
	BreakerAuto       = "auto"
	BreakerOpen       = "open"
	BreakerClosed     = "closed"
	FullRate          = "100" // of ToggleRateScale
)
