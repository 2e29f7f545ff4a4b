// Package storetest is the one suite that every database behind package store passes.
package storetest

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/store"
)

// Subject is one empty database under test.
type Subject struct {
	DB *store.DB
	// Raw reaches the same database past the store: to look at rows, and to put them into states that belong to
	// later steps of an order's life.
	Raw *sql.DB
	// Faults is what the store asks at its fault points.
	Faults *Faults
}

// Run runs the suite. open returns an empty database that lives until the test given to it ends.
func Run(t *testing.T, open func(*testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"PromiseOutcomes", promiseOutcomes},
		{"PromiseSameOrderTwiceInAGroup", sameOrderTwice},
		{"PromiseFoundRowsTellOfTheirTake", foundRows},
		{"PromiseManySKUsAtOnce", manySKUs},
		{"PromiseBisectsBadData", bisects},
		{"PromiseSplitsLargeGroups", splits},
		{"PromiseEndedContext", endedContext},
		{"LastUnitsRace", lastUnitsRace},
		{"LimitRace", limitRace},
		{"SameOrderRace", sameOrderRace},
		{"ReshareFencesPromises", reshareFences},
		{"ReshareAdjusts", reshareAdjusts},
		{"ReshareBeginsOnce", reshareBeginsOnce},
		{"ReshareFinishes", reshareFinishes},
		{"SnapshotPages", snapshotPages},
		{"SKUs", skus},
		{"CheckConstraints", checkConstraints},
		{"Decided", decided},
		{"DecidedWaitsForPromises", decidedWaits},
		{"ClaimNew", claimNew},
		{"ClaimNewIsExclusive", claimExclusive},
		{"RecheckSent", recheckSent},
		{"RenewAll", renewAll},
		{"CountUndelivered", countUndelivered},
		{"InsertOrders", insertOrders},
		{"InsertOrdersRefusesPoison", insertPoison},
		{"InsertOrdersMixed", insertMixed},
		{"InsertOrdersRace", insertRace},
		{"Notices", notices},
		{"OrderStates", orderStates},
		{"OrdersOf", ordersOf},
		{"Books", books},
		{"BypassGate", bypass},
		{"BuyersOf", buyersOf},
		{"CheckLedger", checkLedger},
		{"CorrectLedgerRace", correctLedgerRace},
		{"Compares", compares},
		{"ComparesWhileSettling", comparesWhileSettling},
		{"CorrectsOrders", corrects},
		{"CorrectsOrdersOnce", correctsOnce},
		{"DeadLetters", deadLetters},
		{"DeadLettersOfAnyForm", deadLettersOfAnyForm},
		{"DeadLetterPages", deadLetterPages},
		{"DeadLetterRace", deadLetterRace},
		{"RecheckLeavesDeadLetters", recheckLeavesDead},
		{"RecheckFindsLostReplays", replayedIsRechecked},
		{"Unfinished", unfinished},
		{"ClosesOut", closesOut},
		{"Toggles", toggles},
		{"TogglesRefuse", togglesRefuse},
		{"AuditLog", auditLog},
		{"AuditCuts", auditCuts},
		{"AgreesWithModel", agreesWithModel},
		{"SettleOutcomes", settleOutcomes},
		{"SettleRepeats", settleRepeats},
		{"SettleBadData", settleBadData},
		{"SettleDisagreement", settleDisagreement},
		{"SettleArchived", settleArchived},
		{"Restocks", restocks},
		{"FaultPoints", faultPoints},
		{"Carry", carry},
		{"CloseUnpromised", closeUnpromised},
		{"SettlesLikeModel", settlesLikeModel},
		{"SettlementRace", settlementRace},
		{"DueInBulk", dueInBulk},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// patience bounds what a test waits for. Reaching it is a failure.
const patience = 30 * time.Second

func deadline(t *testing.T) context.Context { return deadlineOf(t) }

func deadlineOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

var lastID atomic.Uint64

// newID returns ids that grow, like those made by time.
func newID() (id sale.OrderID) {
	binary.BigEndian.PutUint64(id[:], 0x0198_0000_0000_7000)
	binary.BigEndian.PutUint64(id[8:], 1<<63|lastID.Add(1))
	return id
}

// newSKU creates a SKU and makes its first epoch live.
func newSKU(t testing.TB, db *store.DB, id string, total, limit int64) {
	t.Helper()
	ctx := context.Background()
	must(t, db.CreateSKU(ctx, sale.SKU{
		ID: id, Limit: limit, PaymentWindow: 15 * time.Minute, Slots: 4, ReservePct: 5,
	}, total))
	reshare(t, db, id, 0, 0)
}

// reshare runs one without a gate and returns the new live epoch.
func reshare(t testing.TB, db *store.DB, sku string, seen, add int64) int64 {
	t.Helper()
	ctx := context.Background()
	snap, err := db.BeginReshare(ctx, sku, seen, sale.LedgerChange{AddTotal: add})
	must(t, err)
	epoch := snap.Listing().Ledger.Epoch
	must(t, snap.Close())
	must(t, db.FinishReshare(ctx, sku, epoch, true, "gate"))
	return epoch
}

// take is an admitted purchase at epoch 1 with a token of its own.
func take(sku, buyer string, quantity, limit int64) sale.Take {
	id := newID()
	return sale.Take{
		Order: id, SKU: sku, Buyer: buyer, Quantity: quantity, Share: 1,
		Token: sale.Token{Epoch: 1, Change: int64(binary.BigEndian.Uint64(id[8:]) &^ (1 << 63))},
		Epoch: 1, Mode: sale.ModeRedis, Limit: limit, Window: 15 * time.Minute,
	}
}

func promise(t testing.TB, db *store.DB, takes ...sale.Take) []sale.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ds := db.Promise(ctx, takes)
	if len(ds) != len(takes) {
		t.Fatalf("%d decisions for %d takes", len(ds), len(takes))
	}
	return ds
}

func outcomes(ds []sale.Decision) []sale.Outcome {
	all := make([]sale.Outcome, len(ds))
	for i, d := range ds {
		all[i] = d.Outcome
	}
	return all
}

func wantOutcomes(t testing.TB, got []sale.Decision, want ...sale.Outcome) {
	t.Helper()
	if !slices.Equal(outcomes(got), want) {
		t.Fatalf("outcomes %v, want %v; decisions %+v", outcomes(got), want, got)
	}
}

// wantBooks checks what must hold at any moment and returns the books.
func wantBooks(t testing.TB, db *store.DB, sku string) sale.Books {
	t.Helper()
	b, err := agreeingBooks(db, sku)
	must(t, err)
	return b
}

func agreeingBooks(db *store.DB, sku string) (sale.Books, error) {
	b, err := db.Books(context.Background(), sku)
	if err == nil && (b.Promised != b.LiveUnits || b.Promised < 0 || b.Promised > b.Total || b.OverLimit != 0) {
		err = fmt.Errorf("the books of %s do not agree: %+v", sku, b)
	}
	return b, err
}

// closeOrder does what a settlement does to the ledger and the outbox.
func closeOrder(t testing.TB, s Subject, o sale.Order, reason sale.Reason) {
	t.Helper()
	must(t, settle(s, o, reason))
}

func settle(s Subject, o sale.Order, reason sale.Reason) error {
	tx, err := s.Raw.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	_, err = tx.Exec("UPDATE ledger SET promised = promised - ? WHERE sku = ?", o.Quantity, o.SKU)
	if err != nil {
		return err
	}
	_, err = tx.Exec("UPDATE outbox SET closed_at = ?, close_reason = ? WHERE id = ?",
		o.AcceptedAt.UnixMilli()+1, string(reason), o.ID[:])
	if err != nil {
		return err
	}
	return tx.Commit()
}

func count(t testing.TB, s Subject, query string, args ...any) (n int64) {
	t.Helper()
	must(t, s.Raw.QueryRow(query, args...).Scan(&n))
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func buyer(i int) string { return fmt.Sprintf("buyer-%d", i) }
