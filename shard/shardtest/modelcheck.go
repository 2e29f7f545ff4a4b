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
			Sealed: m.sealed, Epoch: m.epoch, Left: m.left(), Pending: m.pending(), Initial: m.initial, Changes: m.changes,
			Short: m.left() - m.balance,
		}
	}
	if f != want {
		m.t.Fatalf("figures %+v, want %+v", f, want)
	}
	if f.Initial+m.laid != f.Left-f.Short+f.Pending+m.kept {
		m.t.Fatalf("not conserved: initial %d + laid %d, left %d - short %d + pending %d + kept %d",
			f.Initial, m.laid, f.Left, f.Short, f.Pending, m.kept)
	}
	m.checkJournal()
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

// checkJournal expects what is undecided to be in the journal, and strays besides.
func (m *model) checkJournal() {
	takes, err := m.gates[0].Overdue(m.bench.Context(), m.sku, 0, 0, 1000)
	if err != nil {
		m.t.Fatal(err)
	}
	want := len(m.strays)
	for _, o := range m.orders {
		if o.undecided() {
			want++
		}
	}
	if len(takes) != want {
		m.t.Fatalf("%d takes in the journal, want %d", len(takes), want)
	}
	for _, take := range takes {
		m.expectTake(take)
	}
}
