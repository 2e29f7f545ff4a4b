package sale

import "time"

// Token names one take of one order in one share: the epoch and the share's change number at the moment of the
// take. An order that was taken twice has two tokens; its outbox row holds the one that counts.
type Token struct {
	Epoch  int64
	Change int64
}

// AdmitRequest asks one share for units.
type AdmitRequest struct {
	SKU      string
	Share    Share
	Epoch    int64 // the live epoch as the caller knows it
	Order    OrderID
	Buyer    string
	Quantity int64
	Limit    int64 // live units per buyer; a share can only count its own
	// Acknowledge marks the take as one whose buyer is told ACCEPTED before the promise: it must not be dropped.
	Acknowledge bool
}

// Verdict is what a share says to an AdmitRequest.
type Verdict uint8

// The verdicts of a share.
const (
	Admitted  Verdict = iota + 1 // units taken, undecided until the promise
	Known                        // this id was taken here before; Token, Quantity tell of that take
	Empty                        // fewer units left than asked for
	AtLimit                      // decided units of the buyer reach the limit
	NearLimit                    // only undecided units of the buyer stand in the way
	Stale                        // the share has another epoch than the caller, or is sealed
	Gone                         // the share's keys are missing
)

// Admission is a share's answer.
type Admission struct {
	Verdict  Verdict
	Token    Token // of Admitted and Known
	Quantity int64 // of Known: what that take took
	Decided  bool  // of Known: the share has heard that the take was promised (its order may be closed since)
	// Acknowledged tells of Known that the take carries the acknowledged mark and is undecided.
	Acknowledged bool
	Doubtful     bool  // of Empty, AtLimit, NearLimit: the id was taken here once and given back; ask the outbox by id before refusing
	Epoch        int64 // the share's epoch; 0 when Gone
	Left         int64 // units left in the share after this request
	Changes      int64 // the share's change number; grows whenever its units or buyers change
}

// Settlement tells a share how an undecided take ended.
type Settlement struct {
	SKU      string
	Share    Share
	Order    OrderID
	Buyer    string
	Quantity int64
	Token    Token // of the take that is meant
	Kept     bool  // true: promised; false: dropped, units and count go back
	// Unmarked drops the take only while it carries no acknowledged mark. Whoever decided the drop without having seen
	// a mark says so, because a repetition may have been told ACCEPTED since.
	Unmarked bool
}

// Credit gives a closed order's units back to the share that holds them.
type Credit struct {
	SKU      string
	Share    Share
	Epoch    int64 // of the share; under any other one nothing is credited
	Order    OrderID
	Buyer    string
	Quantity int64
	// Counted says that a light reshare has laid the units out since: only the buyer's count comes back.
	Counted bool
}

// Figures are one share's numbers, read without changing anything.
type Figures struct {
	Share   Share
	Gone    bool // keys missing; the other fields are zero
	Sealed  bool
	Epoch   int64
	Left    int64
	Pending int64 // units admitted and not decided
	Initial int64 // units laid out by the last reshare
	Changes int64
	// Short is how many units less than none are left: takes that were given back and turn out to be promised had been
	// sold again meanwhile. What comes back fills it first, and a reshare ends it.
	Short int64
}

// Winners are the buyers with units in a share, as hashes, read at a change number: every buyer who held units at
// Changes is among them. Buyers whose take was given back stay.
type Winners struct {
	Share   Share
	Epoch   int64
	Changes int64
	Hashes  []uint64 // xxhash64 of the buyer ids, sorted
}

// PendingTake is an undecided entry of a share's journal.
type PendingTake struct {
	Order    OrderID
	Buyer    string
	Quantity int64
	Token    Token
	Age      time.Duration // by the clock of Redis
	// Acknowledged takes were answered ACCEPTED before their promise: they are carried into MySQL, never dropped.
	Acknowledged bool
}

// SealedShare is one page of what sealing a share found.
type SealedShare struct {
	Gone    bool          // there was nothing to seal; the share is now sealed and blank
	Epoch   int64         // the share's epoch before; 0 when Gone
	Pending []PendingTake // undecided takes, oldest first
	More    bool          // the journal holds more: tell these first, then seal again
}

// Holding is one outbox row as a full reshare lays it out.
type Holding struct {
	Seq      int64 // paging position
	Order    OrderID
	Buyer    string
	Quantity int64
	Share    Share // where the take was
	Token    Token
	Closed   bool // closed orders stay known, without units
}
