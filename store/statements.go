package store

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed sql/mysql/*.sql sql/sqlite/*.sql
var sqlFiles embed.FS

// statements holds the SQL of one dialect. Each field is one file, named in files.
type statements struct {
	ping, schemaVersion                                                  string
	skuInsert, skuLock, skuState, skuSlots                               string
	listing, listings                                                    string
	ledgerInsert, ledgerLock, ledgerShare, ledgerPromise                 string
	ledgerRaise, ledgerProgress, ledgerFinish, ledgerLaid                string
	outboxInsert, outboxByIDs, outboxLive, outboxPage                    string
	outboxMarkSent, outboxNew, outboxClaim, outboxOverdue, outboxWritten string
	outboxDone, outboxRenew, outboxRenewAll                              string
	orderInsert, orderByID, ordersOf                                     string
	eventInsert, eventWaiting, eventClaim, eventDelete                   string
	booksLive, booksOrders, booksMissing, booksStrangers, booksOverLimit string
	ordersLock, ordersSettle, ordersDue, orderInsertClosed               string
	ordersWritten                                                        string
	outboxInsertClosed, outboxClose, outboxCloseDone, archiveByIDs       string
	paymentByIDs, paymentInsert                                          string
	ledgerSettle, ledgerEpochs, ledgerCarry                              string
	restockInsert, restockWaiting, restockCredit, restockUncredited      string
	ledgerBypass, ledgerCorrect, outboxBuyers                            string
	reconcileOutbox, reconcileOrders, reconcileLock, reconcileSettled    string
	deadInsert, deadReopen, deadSeq, deadList, deadBySeq                 string
	deadHandle, deadOpen, deadOutbox, outboxResent                       string
	closeoutUnfinished, closeoutUncredited                               string
	closeoutInsert, closeoutReport                                       string
	archivePage, archiveCopy, archiveDelete                              string
	toggleList, toggleSet, toggleClear, auditInsert, auditList           string
	serverSettings, serverConnected, outboxWaiting, deadWaiting          string
	outboxUndelivered                                                    string
}

func (s *statements) files() map[string]*string {
	return map[string]*string{
		"ping": &s.ping, "schema_version": &s.schemaVersion,
		"sku_insert": &s.skuInsert, "sku_lock": &s.skuLock, "sku_state": &s.skuState,
		"sku_slots": &s.skuSlots,
		"listing":   &s.listing, "listings": &s.listings,
		"ledger_insert": &s.ledgerInsert, "ledger_lock": &s.ledgerLock, "ledger_share": &s.ledgerShare,
		"ledger_promise": &s.ledgerPromise, "ledger_raise": &s.ledgerRaise, "ledger_progress": &s.ledgerProgress,
		"ledger_finish": &s.ledgerFinish, "ledger_laid": &s.ledgerLaid,
		"outbox_insert": &s.outboxInsert, "outbox_by_ids": &s.outboxByIDs, "outbox_live": &s.outboxLive,
		"outbox_page": &s.outboxPage, "outbox_mark_sent": &s.outboxMarkSent, "outbox_new": &s.outboxNew,
		"outbox_claim": &s.outboxClaim, "outbox_overdue": &s.outboxOverdue, "outbox_written": &s.outboxWritten,
		"outbox_done": &s.outboxDone, "outbox_renew": &s.outboxRenew, "outbox_renew_all": &s.outboxRenewAll,
		"order_insert": &s.orderInsert, "order_by_id": &s.orderByID, "orders_of": &s.ordersOf,
		"event_insert": &s.eventInsert, "event_waiting": &s.eventWaiting, "event_claim": &s.eventClaim,
		"event_delete": &s.eventDelete,
		"books_live":   &s.booksLive, "books_orders": &s.booksOrders, "books_missing": &s.booksMissing,
		"books_strangers": &s.booksStrangers, "books_over_limit": &s.booksOverLimit,

		"orders_written": &s.ordersWritten,
		"orders_lock":    &s.ordersLock, "orders_settle": &s.ordersSettle, "orders_due": &s.ordersDue,
		"order_insert_closed": &s.orderInsertClosed, "outbox_insert_closed": &s.outboxInsertClosed,
		"outbox_close": &s.outboxClose, "outbox_close_done": &s.outboxCloseDone, "archive_by_ids": &s.archiveByIDs,
		"payment_by_ids": &s.paymentByIDs, "payment_insert": &s.paymentInsert,
		"ledger_settle": &s.ledgerSettle, "ledger_epochs": &s.ledgerEpochs, "ledger_carry": &s.ledgerCarry,
		"restock_insert": &s.restockInsert, "restock_waiting": &s.restockWaiting,
		"restock_credit": &s.restockCredit, "restock_uncredited": &s.restockUncredited,

		"ledger_bypass": &s.ledgerBypass, "ledger_correct": &s.ledgerCorrect, "outbox_buyers": &s.outboxBuyers,
		"reconcile_outbox": &s.reconcileOutbox, "reconcile_orders": &s.reconcileOrders,
		"reconcile_lock": &s.reconcileLock, "reconcile_settled": &s.reconcileSettled,
		"dead_insert": &s.deadInsert, "dead_reopen": &s.deadReopen, "dead_seq": &s.deadSeq, "dead_list": &s.deadList,
		"dead_by_seq": &s.deadBySeq, "dead_handle": &s.deadHandle, "dead_open": &s.deadOpen,
		"dead_outbox": &s.deadOutbox, "outbox_resent": &s.outboxResent,
		"closeout_unfinished": &s.closeoutUnfinished, "closeout_uncredited": &s.closeoutUncredited,
		"closeout_insert": &s.closeoutInsert, "closeout_report": &s.closeoutReport,
		"archive_page": &s.archivePage, "archive_copy": &s.archiveCopy, "archive_delete": &s.archiveDelete,
		"toggle_list": &s.toggleList, "toggle_set": &s.toggleSet, "toggle_clear": &s.toggleClear, "audit_insert": &s.auditInsert,
		"audit_list":      &s.auditList,
		"server_settings": &s.serverSettings, "server_connected": &s.serverConnected,
		"outbox_waiting": &s.outboxWaiting, "dead_waiting": &s.deadWaiting,
		"outbox_undelivered": &s.outboxUndelivered,
	}
}

// loadStatements reads every statement from sql/<dialect>/ of fsys. A file that is missing, empty or left over is an
// error.
func loadStatements(fsys fs.FS, dialect string) (*statements, error) {
	var s statements
	files := s.files()
	for name, into := range files {
		raw, err := fs.ReadFile(fsys, "sql/"+dialect+"/"+name+".sql")
		if err != nil {
			return nil, fmt.Errorf("load statement: %w", err)
		}
		if *into = withoutComments(string(raw)); *into == "" {
			return nil, fmt.Errorf("load statement: sql/%s/%s.sql is empty", dialect, name)
		}
	}
	found, err := fs.ReadDir(fsys, "sql/"+dialect)
	if err != nil {
		return nil, fmt.Errorf("load statements: %w", err)
	}
	for _, f := range found {
		if files[strings.TrimSuffix(f.Name(), ".sql")] == nil {
			return nil, fmt.Errorf("load statements: nothing uses sql/%s/%s", dialect, f.Name())
		}
	}
	return &s, nil
}

// withoutComments drops comment lines: they are for readers of the file, not for every packet to the server.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// inList gives the one "IN (?)" of a statement n placeholders.
func inList(query string, n int) string {
	return strings.Replace(query, "IN (?)", "IN (?"+strings.Repeat(", ?", n-1)+")", 1)
}

// pairList gives the one list of pairs of a statement, "(?, ?)", n pairs of placeholders.
func pairList(query string, n int) string {
	return strings.Replace(query, "(?, ?)", "(?, ?)"+strings.Repeat(", (?, ?)", n-1), 1)
}

// bulk repeats the one row behind VALUES n times.
func bulk(query string, n int) string {
	head, row, _ := strings.Cut(query, "VALUES ")
	return head + "VALUES " + row + strings.Repeat(", "+row, n-1)
}
