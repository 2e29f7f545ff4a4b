package shardtest

import (
	"errors"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/shard"
)

// credit gives several orders back at once, some of them twice, some under another epoch.
func (m *model) credit(g *shard.Gate) func() {
	var credits []sale.Credit
	for range rapid.IntRange(1, 4).Draw(m.t, "credits") {
		id := m.pickID()
		credits = append(credits, sale.Credit{SKU: m.sku, Epoch: m.pickEpoch(), Order: id, Buyer: buyerOf(id), Quantity: 2})
	}
	due := func(c sale.Credit) bool { return m.there && !m.sealed && c.Epoch == m.epoch }
	do := func() {
		applied, err := g.Credit(m.bench.Context(), credits)
		if err != nil {
			m.t.Fatal(err)
		}
		for i, c := range credits {
			if applied[i] != due(c) {
				m.t.Fatalf("%+v applied %v, want %t", c, applied[i], due(c))
			}
		}
	}
	do()
	for _, c := range credits {
		if due(c) {
			m.close(c)
		}
	}
	return do
}

func (m *model) close(c sale.Credit) {
	switch o := m.orders[c.Order]; {
	case o == nil:
		m.orders[c.Order] = &modelOrder{'c', c.Quantity, sale.Token{}, c.Buyer}
		m.balance += c.Quantity
		m.kept -= c.Quantity
		m.changes++
	case o.undecided():
		m.giveBack(o, 'c')
	case o.state == 'k':
		m.kept -= o.quantity
		m.giveBack(o, 'c')
	case o.state == 'd':
		o.state = 'c'
	}
}

func (m *model) drop(g *shard.Gate) func() {
	epoch := m.pickEpoch()
	do := func() error { return g.Drop(m.bench.Context(), m.sku, 0, epoch) }
	if m.there && (!m.sealed || epoch != m.epoch) {
		m.conflict(do())
		return func() { m.conflict(do()) }
	}
	m.must(do())
	m.forget()
	m.there, m.sealed, m.changes = false, false, 0
	return func() { m.must(do()) } // gone already
}

// forget empties the share.
func (m *model) forget() {
	clear(m.orders)
	clear(m.ever)
	clear(m.strays)
	m.balance, m.initial, m.kept, m.laid, m.whole = 0, 0, 0, 0, false
}

// stray puts an id into the journal that has nothing undecided, as an old version or a lost key may have left it.
func (m *model) stray(*shard.Gate) func() {
	id := m.pickID()
	if m.orders[id].undecided() || !m.there {
		return func() {}
	}
	row := redis.Z{Score: 1, Member: string(id[:])}
	m.must(m.raw.ZAdd(m.bench.Context(), m.key(0, "journal"), row).Err())
	m.strays[id] = true
	// Somebody finds it there, and tells how it ended.
	m.takes = append(m.takes, sale.Settlement{SKU: m.sku, Order: id, Buyer: buyerOf(id), Quantity: 1})
	return func() {}
}

func (m *model) held(g *shard.Gate) func() {
	id := m.pickID()
	do := func() {
		take, err := g.Held(m.bench.Context(), m.sku, 0, id)
		switch {
		case !m.orders[id].undecided():
			if !errors.Is(err, sale.ErrNotFound) {
				m.t.Fatalf("held %+v, %v; nothing is undecided", take, err)
			}
		case err != nil || take.Order != id:
			m.t.Fatalf("held %+v, %v", take, err)
		default:
			m.expectTake(take)
		}
	}
	do()
	return do
}

// expectTake compares a row of the journal with the model.
func (m *model) expectTake(take sale.PendingTake) {
	o := m.orders[take.Order]
	if m.strays[take.Order] {
		if o.undecided() || take.Acknowledged {
			m.t.Fatalf("stray %+v, order %+v", take, o)
		}
		return
	}
	want := sale.PendingTake{Order: take.Order, Age: take.Age}
	if o.undecided() {
		want.Buyer, want.Quantity, want.Token, want.Acknowledged = o.buyer, o.quantity, o.token, o.state == 'a'
	}
	if take != want || !o.undecided() || take.Age < 0 {
		m.t.Fatalf("undecided %+v, want %+v", take, want)
	}
}
