package store

import (
	"strings"
	"testing"

	"stockade/biz/sale"
)

func TestChunks(t *testing.T) {
	var takes []sale.Take
	for i := range 1201 {
		takes = append(takes, sale.Take{Order: sale.OrderID{0: byte(i), 1: byte(i >> 8)}, SKU: "a", Buyer: "b", Quantity: 1})
	}
	g := newGroup(takes)
	for _, c := range []struct{ maxBytes, wantMost, wantChunks int }{
		{1 << 20, maxRows, 3},
		{10 * (rowOverheadBytes + 2), 10, 121},
		{1, 1, 1201}, // a row that is too large goes alone
	} {
		all := chunks(g.first, c.maxBytes)
		n := 0
		for _, chunk := range all {
			if len(chunk) == 0 || len(chunk) > c.wantMost {
				t.Errorf("%d bytes: a chunk of %d", c.maxBytes, len(chunk))
			}
			for _, m := range chunk {
				if m != g.first[n] {
					t.Fatalf("%d bytes: member %d is out of order", c.maxBytes, n)
				}
				n++
			}
		}
		if n != len(takes) || len(all) != c.wantChunks {
			t.Errorf("%d bytes: %d members in %d chunks, want %d", c.maxBytes, n, len(all), c.wantChunks)
		}
	}
	if got := chunks(nil, 1); got != nil {
		t.Errorf("chunks of nothing: %v", got)
	}
}

func TestIsolate(t *testing.T) {
	g := newGroup([]sale.Take{
		{Order: sale.OrderID{1}, SKU: "b", Quantity: 1},
		{Order: sale.OrderID{2}, SKU: "a", Quantity: 1},
		{Order: sale.OrderID{3}, SKU: "c", Quantity: 1},
		{Order: sale.OrderID{4}, SKU: "b", Quantity: 1},
	})
	names := func(of []*member) string {
		var b strings.Builder
		for _, m := range of {
			b.WriteString(m.SKU)
		}
		return b.String()
	}
	rest, others := isolate(g.first, &skuError{"b", errRounds})
	if names(rest) != "bb" || len(others) != 1 || names(others[0]) != "ac" {
		t.Errorf("named: %s, %d others", names(rest), len(others))
	}
	rest, others = isolate(g.first, errRounds)
	if names(rest) != "a" || len(others) != 2 || names(others[0]) != "bb" || names(others[1]) != "c" {
		t.Errorf("unnamed: %s, %d others", names(rest), len(others))
	}
	if rest, others = isolate(rest, errRounds); names(rest) != "a" || others != nil {
		t.Errorf("alone: %s, %d others", names(rest), len(others))
	}
}
