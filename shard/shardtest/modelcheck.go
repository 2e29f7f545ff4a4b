package shardtest

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
)

// check compares the share with the model.
func (m *model) check() {
	f := m.figures(0)
	want := sale.Figures{Share: 0, Gone: true}
	if m.there {
		want = sale.Figures{
			Sealed: m.sealed, Epoch: m.epoch, Left: m.left, Pending: m.pending(), Initial: m.initial, Changes: m.changes,
		}
	}
	if f != want {
		m.t.Fatalf("figures %+v, want %+v", f, want)
	}
	if f.Initial+m.short != f.Left+f.Pending+m.kept {
		m.t.Fatalf("not conserved: initial %d + short %d, left %d + pending %d + kept %d",
			f.Initial, m.short, f.Left, f.Pending, m.kept)
	}
	counts, err := m.raw.HGetAll(m.bench.Context(), m.key(0, "buyer")).Result()
	if err != nil {
		m.t.Fatal(err)
	}
	expected := map[string]string{}
	for buyer := range m.ever {
		all, undecided := m.units(buyer)
		expected[buyer] = fmt.Sprintf("%d:%d", all, undecided)
	}
	if fmt.Sprint(counts) != fmt.Sprint(expected) {
		m.t.Fatalf("counts %q, want %q", counts, expected)
	}
	if !m.there || m.sealed {
		return
	}
	w, err := m.gates[0].Winners(m.bench.Context(), m.sku, []sale.Share{0})
	if err != nil || len(w) != 1 {
		m.t.Fatalf("winners %+v, %v", w, err)
	}
	for buyer := range m.ever {
		if !slices.Contains(w[0].Hashes, xxhash.Sum64String(buyer)) {
			m.t.Fatalf("%q held units and is not among the winners", buyer)
		}
	}
}
