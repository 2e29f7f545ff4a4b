package service

import (
	"context"
	"log/slog"
	"time"

	"stockade/biz/sale"
)

// auditTimeout bounds the write of one line, and the reading of a page: an operator waits for it.
const auditTimeout = 2 * time.Second

// AuditStore keeps the audit log. Package store implements it.
type AuditStore interface {
	RecordAudit(ctx context.Context, e sale.AuditEntry) error
	// AuditLog lists a page of at most 200, the newest first.
	AuditLog(ctx context.Context, f sale.AuditFilter) ([]sale.AuditEntry, error)
}

// AuditLog remembers who changed what, and why.
type AuditLog struct {
	store AuditStore
	log   *slog.Logger
}

// NewAuditLog returns the log kept in a store.
func NewAuditLog(store AuditStore, log *slog.Logger) *AuditLog {
	return &AuditLog{store: store, log: log}
}

// Record writes a line, also for a caller who has given up. One that cannot be written, because MySQL is down, goes to
// the node's own log with all that it says. A nil log records nothing.
func (a *AuditLog) Record(ctx context.Context, e sale.AuditEntry) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	if err := a.store.RecordAudit(ctx, e); err != nil {
		a.log.ErrorContext(ctx, "audit line not stored", "error", err, "actor", e.Actor, "role", e.Role, "action", e.Action,
			"target", e.Target, "detail", e.Detail, "reason", e.Reason, "status", e.Status, "request_id", e.RequestID)
	}
}

// reshared writes the line of a full reshare that the service began by itself.
func (a *AuditLog) reshared(ctx context.Context, sku, reason string) {
	a.Record(ctx, sale.AuditEntry{
		Actor: sale.ServiceActor, Action: "sku.reshare", Target: sku, Detail: `{"full":true}`, Reason: reason,
	})
}

// List returns a page, the newest first; sale.ErrUnavailable.
func (a *AuditLog) List(ctx context.Context, f sale.AuditFilter) ([]sale.AuditEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	entries, err := a.store.AuditLog(ctx, f)
	return entries, unavailable(err)
}
