// Package service holds the use cases: selling, looking after SKUs, laying stock out, and the repairs that run all the
// time. It declares the interfaces it needs; adapters live in shard, cache, mq and store.
package service

import (
	"context"
	"time"

	"stockade/biz/sale"
)

// Gate is the Redis side of a sale: what the shares admit. Package shard implements it.
//
// An error from Admit that is sale.ErrQueueFull or sale.ErrNotSent means that nothing was sent; after any other error
// the units may have been taken, and the journal sweeper will find out.
type Gate interface {
	// Admit asks one share. Requests of many callers travel together.
	Admit(ctx context.Context, req sale.AdmitRequest) (sale.Admission, error)
	// Settle tells shares how takes ended and waits until they know.
	Settle(ctx context.Context, s ...sale.Settlement) error
	// SettleLater is Settle without waiting. What does not fit into its bounded queue is left to the journal sweeper.
	SettleLater(s ...sale.Settlement)
	// Peek reads the figures of every share, in the order of sale.Shares, from masters only.
	Peek(ctx context.Context, sku string, slots int) ([]sale.Figures, error)
	// Winners reads the buyers of these shares. A share that changes its epoch meanwhile, or is gone, is left out.
	Winners(ctx context.Context, sku string, shares []sale.Share) ([]sale.Winners, error)
	// Overdue lists at most limit takes of a share that are undecided for longer than age by the clock of Redis,
	// oldest first.
	Overdue(ctx context.Context, sku string, share sale.Share, age time.Duration, limit int) ([]sale.PendingTake, error)
	// Held looks an undecided take up by its order; sale.ErrNotFound when the share holds none.
	Held(ctx context.Context, sku string, share sale.Share, id sale.OrderID) (sale.PendingTake, error)
	// Credit gives closed orders' units and counts back, each once, and tells for each whether its share has it now. A
	// share of another epoch, sealed or gone, has not. After an error some may have it: crediting again is harmless.
	Credit(ctx context.Context, credits []sale.Credit) (applied []bool, err error)
}

// Layer lays stock out over the shares. Package shard implements it; only a reshare calls it. Every call names the
// reshare's epoch and fails with sale.ErrConflict once a later reshare has sealed the share. All calls are safe to repeat.
type Layer interface {
	// Identity names the data that the gate holds now; it changes when a Redis server restarts or a replica takes
	// over. A gate that cannot tell returns "".
	Identity(ctx context.Context) (string, error)
	// Seal gives the share the new epoch, stops admissions there, and returns the oldest undecided takes, at most limit.
	Seal(ctx context.Context, sku string, share sale.Share, epoch int64, limit int) (sale.SealedShare, error)
	// SealAll is Seal for several shares at once, in their order. After an error some of them are sealed.
	SealAll(ctx context.Context, sku string, shares []sale.Share, epoch int64, limit int) ([]sale.SealedShare, error)
	// Tell settles undecided takes of a sealed share: kept ids stay known, the others are given back as doubtful.
	Tell(ctx context.Context, sku string, share sale.Share, epoch int64, kept, dropped []sale.PendingTake) error
	// Wipe empties a sealed share: units, buyers, ids and journal.
	Wipe(ctx context.Context, sku string, share sale.Share, epoch int64) error
	// Fill loads holdings into a sealed share: live ones count for their buyer, closed ones are only known.
	Fill(ctx context.Context, sku string, share sale.Share, epoch int64, rows []sale.Holding) error
	// OpenAll sets what is left, left by left, and lets the shares admit. It fails with sale.ErrConflict while takes of
	// one are undecided; some of them are open then.
	OpenAll(ctx context.Context, sku string, shares []sale.Share, epoch int64, left []int64) error
	// Drop deletes the keys of a share that is sealed at this epoch; one without keys is dropped already.
	Drop(ctx context.Context, sku string, share sale.Share, epoch int64) error
}

// Hints tells every node that something about a SKU changed: its listing, its epoch or its stock. Hints only make nodes
// look sooner; nothing depends on their arrival. Package shard implements it over pub/sub.
type Hints interface {
	Send(ctx context.Context, sku string) error
}

// Catalogue answers listings from memory. Package cache implements it.
type Catalogue interface {
	// Listing returns sale.ErrNotFound for an unknown SKU. An answer may be as old as the cache's lifetime.
	Listing(ctx context.Context, sku string) (sale.Listing, error)
	// Refresh reads the listing anew, sharing the read with other callers.
	Refresh(ctx context.Context, sku string) (sale.Listing, error)
	// Remembered is the listing that was read last, however long ago; it reads nothing.
	Remembered(sku string) (l sale.Listing, known bool)
	// Forget drops one listing, or all with an empty id.
	Forget(sku string)
}

// Flags is the node's memory of empty shares. Package cache implements it.
type Flags interface {
	// Note remembers a share's figures, from a verdict or a peek; older news (by epoch, then change number) is ignored.
	Note(sku string, f sale.Figures)
	// Winners remembers who holds units in a share.
	Winners(sku string, w sale.Winners)
	// Standing answers for a request from memory. keyed says that the request can be a repetition, so that a winner
	// must reach the gate.
	Standing(sku string, epoch int64, slots int, buyerHash uint64, quantity int64, keyed bool) sale.Standing
	// Unwatched lists the shares known empty whose winners are missing or out of date.
	Unwatched(sku string, epoch int64) []sale.Share
	// Left is the sum of what is left in all shares; fresh is false when a share's figures are missing or older than
	// a flag's lifetime.
	Left(sku string, epoch int64, slots int) (left int64, fresh bool)
	// Remembered is Left from figures of this epoch, however old they are.
	Remembered(sku string, epoch int64, slots int) (left int64, known bool)
	// Clear forgets a SKU, or all of them with an empty id.
	Clear(sku string)
}

// Recent remembers orders that were just won on this node. Package cache implements it.
type Recent interface{ Add(id sale.OrderID) }

// Breaker keeps calls away from a dependency while it is sick. Package limiter implements it.
type Breaker interface {
	// Allow asks for one call; sale.ErrBreakerOpen refuses it. Otherwise done must be called once with the call's error, or
	// nil, and how long it took.
	Allow() (done func(err error, took time.Duration), err error)
	// Open tells, without asking for a call, whether it would be refused now.
	Open() bool
}

// Promiser decides groups of takes in MySQL. Package store implements it.
type Promiser interface {
	// Promise decides every take of a group; decisions come in the order of takes. It does not return an error: each
	// take has its own outcome. ctx bounds the whole transaction and is the group's, never one buyer's.
	Promise(ctx context.Context, takes []sale.Take) []sale.Decision
}

// Relay brings committed orders to the broker. Package mq implements it.
type Relay interface {
	// Offer hands over orders that were just committed. It never blocks: what does not fit is left to the sweeper.
	Offer(orders []sale.Order)
}

// Orders reads orders. Package store implements it.
type Orders interface {
	// Order finds an order of a buyer by id, written or still QUEUED. Another buyer's order is sale.ErrNotFound.
	Order(ctx context.Context, buyer string, id sale.OrderID) (sale.Order, error)
	// OrdersOf lists a buyer's written orders by id, newest last, after the given id; zero starts at the beginning.
	OrdersOf(ctx context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error)
}

// OrderLookup finds orders for operators. Package store implements it.
type OrderLookup interface {
	// AnyOrder finds an order by id, whoever it belongs to; sale.ErrNotFound.
	AnyOrder(ctx context.Context, id sale.OrderID) (sale.Order, error)
}

// Ledgers keeps SKUs and their ledgers. Package store implements it.
type Ledgers interface {
	// CreateSKU writes a DRAFT and its ledger; sale.ErrExists when the id is taken.
	CreateSKU(ctx context.Context, sku sale.SKU, total int64) error
	// Listing reads one SKU; sale.ErrNotFound.
	Listing(ctx context.Context, sku string) (sale.Listing, error)
	// Listings reads SKUs in the order of their ids, after the given one.
	Listings(ctx context.Context, after string, limit int) ([]sale.Listing, error)
	// SetState moves a SKU from one of the given states; *sale.StateError when it is in another one.
	SetState(ctx context.Context, sku string, from []sale.SKUState, to sale.SKUState) error
	// Decided looks takes' ids up while holding the ledger row, so that no promise of this SKU is half-way: ids that
	// have no outbox row are missing from the map.
	Decided(ctx context.Context, sku string, ids []sale.OrderID) (map[sale.OrderID]sale.Holding, error)

	// BeginReshare raises the epoch if it is still seen, makes the change (sale.BadInput("total", …) when the total would
	// fall below promised), and opens a snapshot in which every promise of an older epoch is decided.
	// sale.ErrConflict when the epoch moved.
	BeginReshare(ctx context.Context, sku string, seen int64, change sale.LedgerChange) (sale.Snapshot, error)
	// ReshareProgress is the reshare's sign of life; sale.ErrConflict when another one began.
	ReshareProgress(ctx context.Context, sku string, epoch int64) error
	// FinishReshare makes the epoch live, moves a DRAFT to LOADED, and, when the reshare was full, records laid_epoch
	// and the gate's identity. sale.ErrConflict when another one began.
	FinishReshare(ctx context.Context, sku string, epoch int64, full bool, gate string) error
	// Carry promises acknowledged takes of older epochs for the reshare that has this epoch, while nobody else can
	// promise: those that fit are Promised (or Found), the others Short or OverLimit. sale.ErrConflict when another
	// reshare began.
	Carry(ctx context.Context, sku string, epoch int64, takes []sale.Take) ([]sale.Decision, error)
	// CloseUnpromised writes takes that were answered ACCEPTED and cannot be promised: an outbox row and an order row,
	// both CLOSED, COMPENSATED, and the notice. Orders that have an outbox row are left alone. It tells which are closed
	// now, and which the database will never take, and why; a take that is neither has a row that is not closed. After
	// an error the database may not have been asked about the others, but what is told holds.
	CloseUnpromised(ctx context.Context, takes []sale.Take) (closed []sale.OrderID, refused map[sale.OrderID]error, err error)
	// BypassGate makes mode mysql live under a new epoch, in one commit that touches no share.
	BypassGate(ctx context.Context, sku string) error
	// BuyersOf lists the buyers who ever had units of a SKU, without repetition, in the order of their ids, after the
	// given one.
	BuyersOf(ctx context.Context, sku, after string, limit int) ([]string, error)
}

// Bookkeeper counts and compares rows. Package store implements it.
type Bookkeeper interface {
	// Books counts in one snapshot.
	Books(ctx context.Context, sku string) (sale.Books, error)
	// CheckLedger sums the rows up in one snapshot.
	CheckLedger(ctx context.Context, sku string) (sale.LedgerCheck, error)
	// Uncredited sums the units of closed orders that the gate has not got back.
	Uncredited(ctx context.Context, sku string) (int64, error)
	// CompareOutbox looks at a page of outbox rows in the order of seq and returns the orders that do not agree with
	// their order rows, with the seq to go on after; next is 0 behind the last page.
	CompareOutbox(ctx context.Context, sku string, after int64, limit int) (found []sale.Discrepancy, next int64, err error)
	// CompareOrders looks at a page of all order rows and returns those of the SKU without an outbox row; more is
	// false behind the last page. The cursor is the buyer and id of the last row.
	CompareOrders(ctx context.Context, sku string, after sale.OrderCursor, limit int) (found []sale.Discrepancy, next sale.OrderCursor, more bool, err error)
	// CorrectLedger sets promised and sold to what the rows say, while holding the ledger row.
	CorrectLedger(ctx context.Context, sku string) (sale.LedgerCheck, error)
	// CorrectOrder makes the one correction that a discrepancy names, if the rows still disagree in that way.
	CorrectOrder(ctx context.Context, sku string, d sale.Discrepancy) (corrected bool, err error)
}

// Settlements changes orders after they were accepted. Package store implements it.
type Settlements interface {
	// Settle decides every change in one transaction, or a few; outcomes come in the order of changes. ctx bounds all
	// of it. It does not return an error: each change has its own outcome.
	Settle(ctx context.Context, changes []sale.Change) []sale.Settled
	// Due lists at most limit CREATED orders whose payment window has ended by the clock of the database, those that
	// ended first coming first.
	Due(ctx context.Context, limit int) ([]sale.OrderID, error)
	// Restocks lists at most limit restocks that the gate has not got, of an age of at least that, after the given seq.
	Restocks(ctx context.Context, age time.Duration, after int64, limit int) ([]sale.Restock, error)
	// Credited notes that the gate has, or does not need, these restocks.
	Credited(ctx context.Context, ids []sale.OrderID) error
}

// DeadLetters keeps messages that could not be turned into orders. Package store implements it.
type DeadLetters interface {
	// RecordDead keeps a dead letter by its message id. One that is there and was REPLAYED becomes OPEN again.
	RecordDead(ctx context.Context, d sale.DeadLetter) (seq int64, err error)
	// DeadLetters lists a page, by seq, without bodies.
	DeadLetters(ctx context.Context, f sale.DeadFilter) ([]sale.DeadLetter, error)
	// DeadLetter reads one with its body; sale.ErrNotFound.
	DeadLetter(ctx context.Context, seq int64) (sale.DeadLetter, error)
	// HandleDead moves one from OPEN to a state; sale.ErrConflict when it is not OPEN.
	HandleDead(ctx context.Context, seq int64, to sale.DeadState, actor string) error
}

// Replayer sends dead letters to the order queue once more. Package mq implements it.
type Replayer interface {
	// Replay returns when the broker has it.
	Replay(ctx context.Context, d sale.DeadLetter) error
}

// Closeouts ends the life of a SKU in MySQL. Package store implements it.
type Closeouts interface {
	Unfinished(ctx context.Context, sku string) (sale.Unfinished, error)
	// CloseOut keeps the report and moves the SKU from CLOSED to CLOSED_OUT, in one transaction; *sale.StateError.
	CloseOut(ctx context.Context, sku string, report []byte) error
	// CloseoutReport reads the report; sale.ErrNotFound.
	CloseoutReport(ctx context.Context, sku string) ([]byte, error)
	// Archive moves at most limit outbox rows of a CLOSED_OUT SKU out of the outbox and tells how many.
	Archive(ctx context.Context, sku string, limit int) (int, error)
}

// ToggleStore keeps toggles for all nodes. Package store implements it.
type ToggleStore interface {
	// Toggles lists those that are set and not expired by the clock of the database.
	Toggles(ctx context.Context) ([]sale.Toggle, error)
	// SetToggle stores one.
	SetToggle(ctx context.Context, t sale.Toggle) error
	// ClearToggle forgets what is stored of one; an empty scope is the one for all SKUs.
	ClearToggle(ctx context.Context, name, scope string) error
}
