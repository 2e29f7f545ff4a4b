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
}

// Layer lays stock out over the shares. Package shard implements it; only a reshare calls it. Every call names the
// reshare's epoch and fails with sale.ErrConflict once a later reshare has sealed the share. All calls are safe to repeat.
type Layer interface {
	// Identity names the data that the gate holds now; it changes when a Redis server restarts or a replica takes
	// over. A gate that cannot tell returns "".
	Identity(ctx context.Context) (string, error)
	// Seal gives the share the new epoch, stops admissions there, and returns the oldest undecided takes, at most limit.
	Seal(ctx context.Context, sku string, share sale.Share, epoch int64, limit int) (sale.SealedShare, error)
	// Tell settles undecided takes of a sealed share: kept ids stay known, the others are given back as doubtful.
	Tell(ctx context.Context, sku string, share sale.Share, epoch int64, kept, dropped []sale.PendingTake) error
	// Wipe empties a sealed share: units, buyers, ids and journal.
	Wipe(ctx context.Context, sku string, share sale.Share, epoch int64) error
	// Fill loads holdings into a sealed share: live ones count for their buyer, closed ones are only known.
	Fill(ctx context.Context, sku string, share sale.Share, epoch int64, rows []sale.Holding) error
	// Open sets what is left and lets the share admit. It fails with sale.ErrConflict while takes are undecided.
	Open(ctx context.Context, sku string, share sale.Share, epoch, left int64) error
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
	// Clear forgets a SKU, or all of them with an empty id.
	Clear(sku string)
}

// Recent remembers orders that were just won on this node. Package cache implements it.
type Recent interface{ Add(id sale.OrderID) }

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

	// BeginReshare raises the epoch if it is still seen, adds addTotal to the total (sale.BadInput("total", …) when that
	// would fall below promised), and opens a snapshot in which every promise of an older epoch is decided.
	// sale.ErrConflict when the epoch moved.
	BeginReshare(ctx context.Context, sku string, seen, addTotal int64) (sale.Snapshot, error)
	// ReshareProgress is the reshare's sign of life; sale.ErrConflict when another one began.
	ReshareProgress(ctx context.Context, sku string, epoch int64) error
	// FinishReshare makes the epoch live, moves a DRAFT to LOADED, and, when the reshare was full, records laid_epoch
	// and the gate's identity. sale.ErrConflict when another one began.
	FinishReshare(ctx context.Context, sku string, epoch int64, full bool, gate string) error
}

// Bookkeeper counts rows for an audit. Package store implements it.
type Bookkeeper interface {
	Books(ctx context.Context, sku string) (sale.Books, error)
}
