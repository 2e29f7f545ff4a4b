package router

import (
	"encoding/json"
	"testing"

	"stockade/biz/handler"
)

// Purchases that a bucket refuses are counted as RATE_LIMITED, whichever bucket it was; other refused requests are not.
func TestRefusedPurchasesAreCounted(t *testing.T) {
	n := startNode(t, behindGateway)
	counted := func() int64 {
		t.Helper()
		var figures handler.NodeJSON
		if err := json.Unmarshal([]byte(send(t, "GET", n.adminURL()+"/admin/v1/node", "").body), &figures); err != nil {
			t.Fatal(err)
		}
		return figures.Results["RATE_LIMITED"]
	}
	for i, shut := range []func(*buckets){
		func(b *buckets) { b.noBuyers = true }, func(b *buckets) { b.noAddr = true }, func(b *buckets) { b.noGlobal = true },
	} {
		n.buckets.set(func() { shut(n.buckets) })
		if got := n.buy(t, `{"quantity":1}`, someClient); got.status != 429 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		if got := counted(); got != int64(i+1) {
			t.Errorf("%d refused purchases are counted as %d", i+1, got)
		}
	}
	if got := send(t, "GET", n.publicURL()+"/v1/skus/demo", ""); got.status != 429 || counted() != 3 {
		t.Errorf("a refused look: %d, %d counted", got.status, counted())
	}
}
