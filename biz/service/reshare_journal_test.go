package service_test

import (
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// A reshare closes an accepted order that no longer fits. The take's own promise, which comes late, finds that row and
// must not take the unit from the share once more.
func TestALatePromiseKeepsNothingThatAReshareClosed(t *testing.T) {
	a := acceptOne(t)
	a.sellOut(t)
	if err := a.n.resharer.Run(t.Context(), a.sku.ID, service.ReshareOrder{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	a.wantOrder(t, a.take, sale.OrderClosed)
	a.wantShare(t, 0, 0, 0)
	a.late(t)
	a.wantShare(t, 0, 0, 0)
}
