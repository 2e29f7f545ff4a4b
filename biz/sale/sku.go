// Package sale is the domain: SKUs, shares, verdicts, promises and orders, with their rules. It knows no network, no
// database and no clock, and imports the standard library only.
package sale

import (
	"fmt"
	"time"
)

// Limits of a SKU's fields. The id's alphabet excludes braces because they would move a Redis hash tag.
const (
	MaxSKUID         = 64   // bytes
	MaxBuyerID       = 128  // bytes
	MaxQuantity      = 1000 // units in one order
	MaxTotal         = 1_000_000_000
	MaxSlots         = 32 // stock slots of one SKU
	MaxReservePct    = 50 // percent of the stock
	unitsPerAutoSlot = 50 // SlotsFor keeps about this many units in a slot
	DefaultReserve   = 5  // percent of the stock
	DefaultLimit     = 2  // units per buyer
	DefaultWindow    = 15 * time.Minute
	maxPaymentWindow = 30 * 24 * time.Hour
)

// SKUIDPattern is the form of a SKU id, as messages name it.
const SKUIDPattern = "[A-Za-z0-9._-]{1,64}"

// SKUState is where a SKU stands in its life: DRAFT → LOADED → OPEN ⇄ PAUSED → CLOSED → CLOSED_OUT.
type SKUState string

// The states of a SKU.
const (
	Draft     SKUState = "DRAFT"      // created, no stock in the gate
	Loaded    SKUState = "LOADED"     // stock laid out, not opened
	Open      SKUState = "OPEN"       // on sale inside its window
	Paused    SKUState = "PAUSED"     // an operator holds the sale
	Closed    SKUState = "CLOSED"     // the sale is over
	ClosedOut SKUState = "CLOSED_OUT" // the books agreed and the gate's keys are gone
)

// moves lists the operator's transitions; load (DRAFT → LOADED) happens through a reshare.
var moves = map[SKUState][]SKUState{
	Loaded: {Draft},
	Open:   {Loaded, Paused},
	Paused: {Open},
	Closed: {Loaded, Open, Paused},
}

// MayBecome tells the states from which a SKU may move to s.
func (s SKUState) MayBecome() []SKUState { return moves[s] }

// HasStock tells whether the gate holds shares of a SKU in this state.
func (s SKUState) HasStock() bool { return s == Loaded || s == Open || s == Paused }

// SKU is what is sold.
type SKU struct {
	ID            string
	State         SKUState
	OpensAt       time.Time     // purchases before it are NOT_STARTED
	ClosesAt      time.Time     // purchases at or after it are ENDED; zero means never
	Limit         int64         // live units per buyer
	PaymentWindow time.Duration // expires_at = accepted_at + PaymentWindow
	Slots         int           // 1 to MaxSlots
	ReservePct    int           // percent of what is left that a reshare lays into the reserve
	TokenRequired bool          // purchases need a purchase token
}

// ValidSKUID reports whether id has the form of SKUIDPattern. Each purchase asks several times, and a regular expression
// took 100 times as long.
func ValidSKUID(id string) bool {
	if id == "" || len(id) > MaxSKUID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Validate returns an *InputError naming the first field that is out of range.
func (s SKU) Validate() error {
	switch {
	case !ValidSKUID(s.ID):
		return BadInput("sku", "must match "+SKUIDPattern)
	case s.Limit < 1 || s.Limit > MaxQuantity:
		return BadInput("limit", fmt.Sprintf("must be a whole number from 1 to %d", MaxQuantity))
	case s.Slots < 1 || s.Slots > MaxSlots:
		return BadInput("slots", fmt.Sprintf("must be \"auto\" or a whole number from 1 to %d", MaxSlots))
	case s.ReservePct < 0 || s.ReservePct > MaxReservePct:
		return BadInput("reserve_pct", fmt.Sprintf("must be a whole number from 0 to %d", MaxReservePct))
	case s.PaymentWindow < time.Second || s.PaymentWindow > maxPaymentWindow:
		return BadInput("payment_window", "must be from 1s to 720h")
	case !s.ClosesAt.IsZero() && !s.ClosesAt.After(s.OpensAt):
		return BadInput("closes_at", "must be after opens_at")
	}
	return nil
}

// SlotsFor is the slot count that `slots: auto` gives a SKU of total units: about 50 units in a slot, 1 to
// MaxSlots slots.
func SlotsFor(total int64) int {
	return int(min(max(total/unitsPerAutoSlot, 1), MaxSlots))
}

// Window tells whether the SKU sells at now and, when it does not, why.
func (s SKU) Window(now time.Time) (Reason, bool) {
	switch {
	case s.State == Paused:
		return ReasonPaused, false
	case s.State == Closed || s.State == ClosedOut || (!s.ClosesAt.IsZero() && !now.Before(s.ClosesAt)):
		return ReasonEnded, false
	case s.State != Open || now.Before(s.OpensAt):
		return ReasonNotStarted, false
	}
	return "", true
}
