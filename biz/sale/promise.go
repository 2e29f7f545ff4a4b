package sale

import "time"

// Take is an admitted purchase on its way to the promise.
type Take struct {
	Order    OrderID
	SKU      string
	Buyer    string
	Quantity int64
	Share    Share
	Token    Token // Token.Epoch is the epoch of the take
	Epoch    int64 // live epoch under which it may be promised
	Mode     Mode
	Limit    int64
	Window   time.Duration // payment window
}

// Outcome is how the promise decided a take.
type Outcome uint8

// The outcomes of a promise.
const (
	Promised  Outcome = iota + 1 // committed by this transaction
	Found                        // the order exists, from this very take
	FoundElse                    // the order exists, from another take: this one's units go back
	Fenced                       // the epoch or the mode moved on: admit again
	Short                        // the ledger has too few units
	OverLimit                    // the buyer's live units in MySQL reach the limit
	Rejected                     // the database refuses this row's data
	NotTaken                     // rolled back for a passing reason (lock wait, deadlock, no connection): nothing happened
	Undecided                    // the commit's outcome is unknown
)

// Decision is the promise's answer to one take.
type Decision struct {
	Outcome   Outcome
	Order     Order // of Promised, Found and FoundElse. Found orders are QUEUED, or CLOSED
	Available int64 // of Short: what the ledger had left
	Live      int64 // of OverLimit: the buyer's live units
	Err       error // of Rejected, NotTaken and Undecided
}
