package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

// auditLog writes lines and reads them back by every filter, page by page.
func auditLog(t *testing.T, s Subject) {
	ctx := deadline(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var want []sale.AuditEntry // the newest first
	for i := range 60 {
		e := sale.AuditEntry{
			Actor: fmt.Sprintf("ann-%d", rng.IntN(3)), Role: "operator", Action: []string{"sku.open", "sku.close"}[rng.IntN(2)],
			Target: fmt.Sprintf("sku-%d", rng.IntN(3)), Detail: `{"add":1}`, Reason: fmt.Sprintf("why %d", i), Status: 200 + rng.IntN(300),
			RequestID: fmt.Sprintf("r%d", i),
		}
		must(t, s.DB.RecordAudit(ctx, e))
		want = append([]sale.AuditEntry{e}, want...)
	}
	for _, f := range []sale.AuditFilter{
		{}, {Actor: "ann-1"}, {Action: "sku.open"}, {Target: "sku-2"}, {Actor: "ann-0", Action: "sku.close", Target: "sku-0"}, {Actor: "nobody"},
	} {
		var chosen, got []sale.AuditEntry
		for _, e := range want {
			if (f.Actor == "" || f.Actor == e.Actor) && (f.Action == "" || f.Action == e.Action) && (f.Target == "" || f.Target == e.Target) {
				chosen = append(chosen, e)
			}
		}
		for f.Limit = 7; ; {
			page, err := s.DB.AuditLog(ctx, f)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				if e.At.IsZero() || f.After != 0 && e.Seq >= f.After {
					t.Fatalf("%+v after %d", e, f.After)
				}
				f.After = e.Seq
				e.Seq, e.At = 0, time.Time{}
				got = append(got, e)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(chosen) {
			t.Errorf("%+v: got %v, want %v", f, got, chosen)
		}
	}
}

// auditCuts writes texts that are too long for their columns.
func auditCuts(t *testing.T, s Subject) {
	ctx := deadline(t)
	long := strings.Repeat("x", 10_000)
	must(t, s.DB.RecordAudit(ctx, sale.AuditEntry{
		Actor: long, Role: long, Action: long, Target: long, Detail: long, Reason: long, RequestID: long,
	}))
	got, err := s.DB.AuditLog(ctx, sale.AuditFilter{Limit: 5})
	must(t, err)
	if len(got) != 1 || len(got[0].Reason) != 1024 || len(got[0].Detail) != 4096 || len(got[0].Actor) != 128 {
		t.Errorf("got %d lines", len(got))
	}
}
