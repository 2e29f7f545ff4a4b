package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// deafStore keeps no line.
type deafStore struct{ asked int }

func (d *deafStore) RecordAudit(ctx context.Context, _ sale.AuditEntry) error {
	d.asked++
	return errors.Join(errors.New("MySQL is down"), ctx.Err())
}

func (*deafStore) AuditLog(context.Context, sale.AuditFilter) ([]sale.AuditEntry, error) {
	return nil, errors.New("MySQL is down")
}

// A line that cannot be stored is in the node's log, with all that it says, also when the operator has hung up.
func TestAuditLinesSurviveInTheLog(t *testing.T) {
	var text bytes.Buffer
	store := &deafStore{}
	audit := service.NewAuditLog(store, slog.New(slog.NewTextHandler(&text, nil)))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	audit.Record(gone, sale.AuditEntry{
		Actor: "ann", Role: "operator", Action: "sku.open", Target: "demo", Detail: "{}", Reason: "doors", Status: 503, RequestID: "r1",
	})
	for _, part := range []string{
		"level=ERROR", "actor=ann", "role=operator", "action=sku.open", "target=demo", "detail={}", "reason=doors", "status=503", "request_id=r1",
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%s is missing in %s", part, text.String())
		}
	}
	if store.asked != 1 || strings.Contains(text.String(), "canceled") {
		t.Errorf("asked %d times: %s", store.asked, text.String())
	}
	if _, err := audit.List(t.Context(), sale.AuditFilter{Limit: 1}); !errors.Is(err, sale.ErrUnavailable) {
		t.Errorf("list: %v", err)
	}
	(*service.AuditLog)(nil).Record(t.Context(), sale.AuditEntry{})
}
