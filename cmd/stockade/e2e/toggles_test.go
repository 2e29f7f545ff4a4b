//go:build services

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
)

// Bounds of an operator's word on its way to the other node.
const (
	hintBound  = time.Second
	pollBound  = 3 * time.Second
	toggleSpan = 3 * time.Second
)

// entrance tells whether a node answers a stranger's purchase with PAUSED.
func (p *pair) entrance(i int, sku string) (closed bool) {
	p.newcomers++
	a := p.send(p.node(i).Public, request{sku: sku, buyer: p.t.Name() + sale.OrderID{byte(p.newcomers >> 8), byte(p.newcomers)}.String(), quantity: 1})
	return a.Code == notOnSale && a.Reason == string(sale.ReasonPaused)
}

// awaitEntrance waits until both nodes have the entrance of a SKU so.
func (p *pair) awaitEntrance(sku string, closed bool, bound time.Duration, what string) {
	p.t.Helper()
	took := eventually(p.t, bound, what, func() bool { return p.entrance(0, sku) == closed && p.entrance(1, sku) == closed })
	p.t.Logf("%s: every node %v after the word, bound %v", what, took.Round(time.Millisecond), bound)
}

// A word given to one node is the other's a moment later; one with an end ends by itself; the others' SKUs sell on.
func TestAToggleReachesEveryNode(t *testing.T) {
	p := startPair(t)
	sku, other := p.create(10_000, 2, "--open"), p.create(10_000, 2, "--open")
	p.awaitEntrance(sku, false, pollBound, "on sale")
	p.node(0).CLI("toggle", "set", sale.ToggleEntrance, sale.EntranceClosed, "--sku", sku, "--reason", "test")
	p.awaitEntrance(sku, true, hintBound, "closed by hint")
	if p.entrance(0, other) || p.entrance(1, other) {
		t.Error("another SKU's entrance is closed too")
	}
	p.node(1).CLI("toggle", "set", sale.ToggleEntrance, sale.EntranceOpen, "--sku", sku, "--reason", "test")
	p.awaitEntrance(sku, false, hintBound, "open by hint")
	p.node(0).CLI("toggle", "set", sale.ToggleEntrance, sale.EntranceClosed, "--sku", sku, "--reason", "a while", "--for", toggleSpan.String())
	p.awaitEntrance(sku, true, hintBound, "closed for a while")
	list := string(p.node(1).CLI("toggle", "list"))
	for _, word := range []string{`"a while"`, `"until"`, `"toggle-entrance.md"`, `"store"`} {
		if !strings.Contains(list, word) {
			t.Errorf("stockade toggle list lacks %s:\n%s", word, list)
		}
	}
	p.awaitEntrance(sku, false, toggleSpan+pollBound, "open again by itself")
}

// The path of one SKU by toggle, and back: the list goes by the ledgers, and the SKU sells all the time.
func TestThePathByToggle(t *testing.T) {
	p := startPair(t)
	sku := p.create(100, 2, "--open")
	for _, path := range []string{"mysql", "redis"} {
		moved := string(p.node(0).CLI("toggle", "set", sale.TogglePath, path, "--sku", sku, "--reason", "test"))
		if !strings.Contains(moved, sku) || !strings.Contains(moved, `"`+path+`"`) {
			t.Errorf("to %s: %s", path, moved)
		}
		if got := p.listing(sku).Ledger.Mode; got != path {
			t.Errorf("the ledger says %s, want %s", got, path)
		}
		if listed := strings.Contains(string(p.node(1).CLI("toggle", "list")), sku); listed != (path == "mysql") {
			t.Errorf("on %s: listed %t", path, listed)
		}
		a := p.buy(request{sku: sku, buyer: "buyer-" + path, key: "k", quantity: 1}, manyTries, always(1))
		if a.Code != accepted {
			t.Errorf("a purchase on %s: %v", path, a)
		}
	}
}
