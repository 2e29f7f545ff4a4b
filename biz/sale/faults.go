package sale

import "context"

// Point names a moment between two durable steps, where a process may die, a call may fail, or time may pass.
type Point string

// The points, in the order in which an order's life passes them. Each is reached by the package that makes the step.
const (
	PurchaseAdmitted      Point = "purchase.admitted"    // the gate took the units; no promise yet
	PromiseWritten        Point = "promise.written"      // all rows of a promise are written; COMMIT not sent
	PromiseCommitted      Point = "promise.committed"    // committed; no buyer knows
	PromiseAnswered       Point = "promise.answered"     // buyers know; neither relay nor journal does
	RelayPacked           Point = "relay.packed"         // an envelope is about to be published
	RelayConfirmed        Point = "relay.confirmed"      // the broker has it; its rows are still NEW
	SweepClaimed          Point = "sweep.claimed"        // a sweeper has claimed rows; not published
	NoticePublished       Point = "notice.published"     // the broker has notices; their rows are still there
	ConsumerReceived      Point = "consumer.received"    // a batch has arrived; nothing is written
	OrdersWritten         Point = "orders.written"       // order rows are written; COMMIT not sent
	ConsumerWritten       Point = "consumer.written"     // committed; the batch is not acked
	RetryPublished        Point = "retry.published"      // a poison event is in its retry tier; its envelope is not acked
	DeadLetterRecorded    Point = "dead.recorded"        // a dead letter is recorded; not compensated, not acked
	DeadLetterCompensated Point = "dead.compensated"     // compensated; not acked
	ExpiryDelivered       Point = "expiry.delivered"     // a timeout message has arrived; nothing is closed
	SettlementWritten     Point = "settlement.written"   // orders, ledger, outbox and restock rows are changed; COMMIT not sent
	SettlementCommitted   Point = "settlement.committed" // committed; the gate does not know
	RestockCredited       Point = "restock.credited"     // the gate knows; the restock row has no credited_at
	JournalDecided        Point = "journal.decided"      // overdue takes were looked up; not settled
	JournalCarried        Point = "journal.carried"      // acknowledged takes are in MySQL; not settled
	ReshareRaised         Point = "reshare.raised"       // the epoch is raised; no share is sealed
	ReshareSealed         Point = "reshare.sealed"       // every share is sealed
	ReshareLaid           Point = "reshare.laid"         // buyers and ids are laid out, or undecided takes told
	ReshareOpened         Point = "reshare.opened"       // every share is open; the epoch is not live
	ReshareFinished       Point = "reshare.finished"     // the epoch is live; no node was hinted
	CloseoutSealed        Point = "closeout.sealed"      // every share is sealed for good; nothing is reported
	CloseoutReported      Point = "closeout.reported"    // the report is kept; keys and outbox rows are still there
	CloseoutDropped       Point = "closeout.dropped"     // the keys are gone; outbox rows are not archived
)

// Points lists every point, for tests that walk them all.
var Points = [...]Point{
	PurchaseAdmitted, PromiseWritten, PromiseCommitted, PromiseAnswered, RelayPacked, RelayConfirmed, SweepClaimed,
	NoticePublished, ConsumerReceived, OrdersWritten, ConsumerWritten, RetryPublished, DeadLetterRecorded, DeadLetterCompensated,
	ExpiryDelivered, SettlementWritten, SettlementCommitted, RestockCredited, JournalDecided, JournalCarried,
	ReshareRaised, ReshareSealed, ReshareLaid, ReshareOpened, ReshareFinished, CloseoutSealed, CloseoutReported,
	CloseoutDropped,
}

// Faults decides what happens at a point. The wiring gives one to every part; in production it is NoFaults.
type Faults interface {
	// At returns nil to go on. An error is treated as trouble of the step that would have come next. It may block for
	// a while, and it may not return at all, when the process is to die here.
	At(ctx context.Context, p Point) error
}

// NoFaults lets everything go on.
type NoFaults struct{}

// At returns nil.
func (NoFaults) At(context.Context, Point) error { return nil }
