package sale

// Code is the verdict on one purchase. The numbers are the classic result numbers of the wire format.
type Code int8

// The verdicts. Busy and Retry are not final: the same key may be asked again.
const (
	Accepted     Code = 1
	SoldOut      Code = 0
	NotOnSale    Code = -1
	LimitReached Code = -2
	RateLimited  Code = -3
	Busy         Code = -4
	Retry        Code = -5
)

// Codes lists every verdict, for tables and counters.
var Codes = [...]Code{Accepted, SoldOut, NotOnSale, LimitReached, RateLimited, Busy, Retry}

func (c Code) String() string {
	switch c {
	case Accepted:
		return "ACCEPTED"
	case SoldOut:
		return "SOLD_OUT"
	case NotOnSale:
		return "NOT_ON_SALE"
	case LimitReached:
		return "LIMIT_REACHED"
	case RateLimited:
		return "RATE_LIMITED"
	case Busy:
		return "BUSY"
	case Retry:
		return "RETRY"
	}
	return "UNKNOWN"
}

// Reason says more about a verdict or about a closed order.
type Reason string

// Reasons of NOT_ON_SALE, SOLD_OUT, BUSY, RETRY, and of a closed order.
const (
	ReasonNotStarted Reason = "NOT_STARTED"
	ReasonEnded      Reason = "ENDED"
	ReasonPaused     Reason = "PAUSED"
	ReasonNotEnough  Reason = "NOT_ENOUGH"  // some units are left, fewer than asked for
	ReasonQueueFull  Reason = "QUEUE_FULL"  // a bounded queue on this node is full
	ReasonDependency Reason = "DEPENDENCY"  // Redis or MySQL did not answer
	ReasonReshare    Reason = "RESHARE"     // the stock is being laid out anew and took too long
	ReasonUndecided  Reason = "UNDECIDED"   // units of the same buyer are still being decided
	ReasonElsewhere  Reason = "OTHER_SHARE" // the units that are left are in other shares
	ReasonPathRate   Reason = "PATH_RATE"   // more purchases than path mysql may take per second
	ReasonBreaker    Reason = "BREAKER"     // a breaker keeps a sick dependency away
	ReasonBacklog    Reason = "BACKLOG"     // too many accepted orders are not written yet
	ReasonOverload   Reason = "OVERLOAD"    // this machine has more to do than it can

	ReasonPaymentTimeout Reason = "PAYMENT_TIMEOUT" // not paid inside its window
	ReasonCancelled      Reason = "CANCELLED"       // by its buyer, or by an operator
	ReasonCompensated    Reason = "COMPENSATED"     // it could not be written, or not be promised after a loss
)

// Result is the answer to one purchase.
type Result struct {
	Code     Code
	Reason   Reason
	Order    Order // set for Accepted; its ID also with Unknown
	Unknown  bool  // Busy, or NotOnSale while nobody can be asked: an order with Order.ID may turn out to exist
	Replayed bool  // Accepted: the order existed before this request
	SKU      SKU   // for NotOnSale (times) and LimitReached (limit)
}
