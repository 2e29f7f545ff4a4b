package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"stockade/biz/sale"
)

// Bounds of an audit row's texts, as the columns declare them, in bytes.
const (
	maxAuditAction  = 64
	maxAuditTarget  = 255
	maxAuditDetail  = 4096
	maxAuditRole    = 16
	maxAuditRequest = 64
	maxAuditListing = 200
)

// RecordAudit adds a line to the audit log, with the time of the database. Texts that are too long are cut: what was done
// is done, and the line must not be lost.
func (db *DB) RecordAudit(ctx context.Context, e sale.AuditEntry) error {
	err := db.writing(ctx, func(t *txn) error {
		_, err := t.exec(ctx, db.sql.auditInsert, millis(db.clock.now()), cut(e.Actor, maxActor), cut(e.Role, maxAuditRole),
			cut(e.Action, maxAuditAction), cut(e.Target, maxAuditTarget), cut(e.Detail, maxAuditDetail), cut(e.Reason, maxReason),
			e.Status, cut(e.RequestID, maxAuditRequest))
		return err
	})
	if err != nil {
		return fmt.Errorf("record audit: %w", err)
	}
	return nil
}

// AuditLog lists a page of at most 200, the newest first.
func (db *DB) AuditLog(ctx context.Context, f sale.AuditFilter) ([]sale.AuditEntry, error) {
	before := f.After
	if before == 0 {
		before = math.MaxInt64
	}
	return collect(ctx, db.read, scanAudit, db.sql.auditList, before, f.Actor, f.Actor, f.Action, f.Action, f.Target, f.Target,
		min(f.Limit, maxAuditListing))
}

func scanAudit(rows *sql.Rows) (e sale.AuditEntry, err error) {
	var at int64
	err = rows.Scan(&e.Seq, &at, &e.Actor, &e.Role, &e.Action, &e.Target, &e.Detail, &e.Reason, &e.Status, &e.RequestID)
	e.At = fromMillis(at)
	return e, err
}
