package sale

// ChangeKind is what somebody wants done with an order after it was accepted.
type ChangeKind uint8

// The changes of an order.
const (
	Pay        ChangeKind = iota + 1 // CREATED → PAID, also after ExpiresAt
	Cancel                           // CREATED → CLOSED, CANCELLED, on its buyer's or an operator's word
	Expire                           // CREATED → CLOSED, PAYMENT_TIMEOUT, when ExpiresAt has passed
	Compensate                       // an order without a row gets one that is CLOSED, COMPENSATED; one with a row stays
)

// Change asks for one change of one order.
type Change struct {
	Kind    ChangeKind
	Order   OrderID
	Buyer   string // the order must be this buyer's; empty: whoever it belongs to
	Payment string // of Pay: the provider's id of the payment, 1 to MaxPaymentID bytes
	Actor   string // who wants it, for the restock row: "buyer", "expiry", "dead letter", "operator <name>"
}

// MaxPaymentID bounds a payment's id, in bytes.
const MaxPaymentID = 128

// ChangeOutcome is how the settlement decided a change.
type ChangeOutcome uint8

// The outcomes of a settlement.
const (
	Changed        ChangeOutcome = iota + 1 // committed by this transaction
	Already                                 // the order stands as asked for: paid by this very payment, or CLOSED
	NoOrder                                 // no such order, or another buyer's
	StillQueued                             // accepted, its row is not written yet: ask again
	NotDue                                  // of Expire: ExpiresAt has not passed
	IsPaid                                  // of Cancel and Expire: a paid order is never closed
	RefundRequired                          // of Pay: the order is CLOSED, or paid by another payment; noted once per payment
	PaymentReused                           // of Pay: this payment id belongs to another order
	NotChanged                              // rolled back for a passing reason: nothing happened
	ChangeUnknown                           // the commit's outcome is unknown: ask again
)

// Settled is the settlement's answer to one change.
type Settled struct {
	Outcome ChangeOutcome
	Order   Order    // as it stands now, where there is one
	Restock *Restock // of a close that this transaction committed and whose units were promised
	Err     error    // of NotChanged and ChangeUnknown
}

// Restock is what a closed order gave back in MySQL, on its way to the gate.
type Restock struct {
	Seq      int64 // paging position
	Order    OrderID
	SKU      string
	Buyer    string
	Quantity int64
	Share    Share // where the take was
	Taken    int64 // epoch of the take
	Epoch    int64 // the ledger's epoch at the commit that closed the order: later reshares have counted it
}

// Reason says why the order of this change is closed.
func (k ChangeKind) Reason() Reason {
	switch k {
	case Cancel:
		return ReasonCancelled
	case Expire:
		return ReasonPaymentTimeout
	case Compensate:
		return ReasonCompensated
	}
	return ""
}
