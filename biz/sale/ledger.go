package sale

import "time"

// Mode is the way purchases of a SKU go. A promise made under another mode than the ledger's is fenced.
type Mode string

// The ways of a purchase.
const (
	ModeRedis Mode = "redis" // through the gate, then the promise
	ModeMySQL Mode = "mysql" // the promise alone decides
)

// LedgerState tells whether a reshare is under way.
type LedgerState string

// The states of a ledger.
const (
	Steady    LedgerState = "STEADY"
	Resharing LedgerState = "RESHARING"
)

// Ledger is the truth about one SKU's stock: available = Total − Promised.
type Ledger struct {
	Epoch      int64  // version of the shares that a reshare is laying out, or has
	LiveEpoch  int64  // version under which promises commit; behind Epoch while a reshare runs; 0 = never loaded
	LaidEpoch  int64  // version of the last full reshare
	LaidGate   string // identity of the gate at the last full reshare
	Mode       Mode
	State      LedgerState
	ProgressAt time.Time // last sign of life of the reshare
	Total      int64
	Promised   int64 // accepted and not closed
	Sold       int64 // paid
	Changes    int64 // units ever promised plus units ever closed; only grows
	LaidSlots  int   // slots that the gate may hold keys of: the greatest count since the last full reshare
}

// Available is what may still be promised.
func (l Ledger) Available() int64 { return l.Total - l.Promised }

// Live tells whether shares of this ledger's epoch take purchases.
func (l Ledger) Live() bool { return l.LiveEpoch > 0 && l.LiveEpoch == l.Epoch }

// Listing is what a node needs to know of a SKU to sell it.
type Listing struct {
	SKU
	Ledger Ledger
}
