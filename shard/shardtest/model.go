package shardtest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/shard"
)

// modelOrder is what the model knows of an order in the share.
type modelOrder struct {
	state    byte // p undecided, k kept, d doubtful, c closed
	quantity int64
	token    sale.Token
	buyer    string
}

// model is one share as plain sums over its orders. It counts nothing on the side, unlike the scripts.
type model struct {
	*bench
	t       *rapid.T
	gates   [2]*shard.Gate
	there   bool
	sealed  bool
	epoch   int64
	whole   bool // laid out since it was made or wiped
	before  int64
	left    int64
	initial int64
	kept    int64 // units that left the share for good since it was opened, minus those that came back
	short   int64 // units that were kept and could not be taken any more
	changes int64
	orders  map[sale.OrderID]*modelOrder
	takes   []sale.Settlement // every take there ever was, for late settlements
	ever    map[string]bool   // buyers with a field
}

// testModel walks a share through random histories on two gates and compares it with the model after every step. Steps
// are often repeated, as after a lost reply; that must change nothing.
func testModel(t *testing.T, b *bench) {
	gates := [2]*shard.Gate{b.gate, b.open(b.address, nil)}
	history := 0
	rapid.Check(t, func(rt *rapid.T) {
		history++
		b.sku = fmt.Sprintf("m%d", history)
		defer b.dropKeys()
		m := &model{bench: b, t: rt, gates: gates, orders: map[sale.OrderID]*modelOrder{}, ever: map[string]bool{}}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			m.step()
			m.check()
		}
	})
}

func (m *model) step() {
	steps := []func(g *shard.Gate) func(){m.seal, m.tell, m.wipe, m.fill, m.open, m.open, m.credit}
	if m.there && !m.sealed {
		steps = []func(g *shard.Gate) func(){
			m.admit, m.admit, m.admit, m.admit, m.admit, m.settle, m.settle, m.settle, m.credit, m.seal,
		}
	}
	g := m.gates[rapid.IntRange(0, 1).Draw(m.t, "gate")]
	again := rapid.SampledFrom(steps).Draw(m.t, "step")(g)
	if rapid.Bool().Draw(m.t, "repeated") {
		once := m.dump(0)
		again()
		if twice := m.dump(0); twice != once {
			m.t.Fatalf("a repetition changed the share:\n%s\n%s", once, twice)
		}
	}
}

func (m *model) pickID() (id sale.OrderID) {
	id[15] = byte(rapid.IntRange(1, 12).Draw(m.t, "id"))
	return id
}

// buyerOf gives every order its buyer: four of them, so that limits matter.
func buyerOf(id sale.OrderID) string { return odd(int(id[15]) % 4) }

func (m *model) pickEpoch() int64 {
	return max(1, m.epoch+rapid.SampledFrom([]int64{0, 0, 0, 0, 1, -1}).Draw(m.t, "epoch"))
}

// units are those of a buyer that count for the limit, and those of them that are undecided.
func (m *model) units(buyer string) (all, undecided int64) {
	for _, o := range m.orders {
		if o.buyer == buyer && o.state == 'p' {
			undecided += o.quantity
		}
		if o.buyer == buyer && (o.state == 'p' || o.state == 'k') {
			all += o.quantity
		}
	}
	return all, undecided
}

func (m *model) pending() (n int64) {
	for _, o := range m.orders {
		if o.state == 'p' {
			n += o.quantity
		}
	}
	return n
}

func (m *model) admit(g *shard.Gate) func() {
	id := m.pickID()
	r := sale.AdmitRequest{
		SKU: m.sku, Epoch: m.pickEpoch(), Order: id, Buyer: buyerOf(id),
		Quantity: rapid.Int64Range(1, 3).Draw(m.t, "quantity"), Limit: rapid.Int64Range(1, 5).Draw(m.t, "limit"),
	}
	want := m.predict(r)
	got, err := g.Admit(m.bench.Context(), r)
	if err != nil {
		m.t.Fatal(err)
	}
	if want.Verdict == sale.Admitted {
		m.left -= r.Quantity
		m.changes++
		want.Left, want.Changes = m.left, m.changes
		want.Token = sale.Token{Epoch: m.epoch, Change: m.changes}
		m.orders[id] = &modelOrder{'p', r.Quantity, want.Token, r.Buyer}
		m.ever[r.Buyer] = true
		m.takes = append(m.takes, settled(r, want, false))
	}
	if got != want {
		m.t.Fatalf("%+v: %+v, want %+v", r, got, want)
	}
	return func() {
		if got.Verdict == sale.Admitted {
			if again, err := g.Admit(m.bench.Context(), r); err != nil || again.Verdict != sale.Known || again.Token != got.Token {
				m.t.Fatalf("admitted again: %+v, %v", again, err)
			}
		}
	}
}

func (m *model) predict(r sale.AdmitRequest) sale.Admission {
	a := sale.Admission{Epoch: m.epoch, Left: m.left, Changes: m.changes}
	all, undecided := m.units(r.Buyer)
	o := m.orders[r.Order]
	switch {
	case r.Epoch != m.epoch:
		a.Verdict = sale.Stale
	case o != nil && o.state != 'd':
		a.Verdict, a.Token, a.Quantity, a.Decided = sale.Known, o.token, o.quantity, o.state != 'p'
	case all-undecided+r.Quantity > r.Limit:
		a.Verdict, a.Doubtful = sale.AtLimit, o != nil
	case all+r.Quantity > r.Limit:
		a.Verdict, a.Doubtful = sale.NearLimit, o != nil
	case m.left < r.Quantity:
		a.Verdict, a.Doubtful = sale.Empty, o != nil
	default:
		a.Verdict = sale.Admitted
	}
	return a
}

func (m *model) settle(g *shard.Gate) func() {
	if len(m.takes) == 0 {
		return func() {}
	}
	s := rapid.SampledFrom(m.takes).Draw(m.t, "take")
	s.Kept = rapid.Bool().Draw(m.t, "kept")
	do := func() {
		if err := g.Settle(m.bench.Context(), s); err != nil {
			m.t.Fatal(err)
		}
	}
	do()
	if o := m.orders[s.Order]; o != nil && o.token == s.Token {
		switch {
		case o.state == 'p' && s.Kept:
			o.state = 'k'
			m.kept += o.quantity
		case o.state == 'p':
			m.giveBack(o, 'd')
		case o.state == 'd' && s.Kept:
			o.state = 'k'
			m.kept += o.quantity
			m.changes++
			if m.left >= o.quantity {
				m.left -= o.quantity
			} else {
				m.short += o.quantity
			}
		}
	}
	return do
}

func (m *model) giveBack(o *modelOrder, state byte) {
	o.state = state
	m.left += o.quantity
	m.changes++
}

func (m *model) credit(g *shard.Gate) func() {
	id := m.pickID()
	c := sale.Credit{SKU: m.sku, Epoch: m.pickEpoch(), Order: id, Buyer: buyerOf(id), Quantity: 2}
	do := func() {
		applied, err := g.Credit(m.bench.Context(), []sale.Credit{c})
		if want := m.there && !m.sealed && c.Epoch == m.epoch; err != nil || applied[0] != want {
			m.t.Fatalf("%+v applied %v, want %t: %v", c, applied, want, err)
		}
	}
	do()
	if !m.there || m.sealed || c.Epoch != m.epoch {
		return do
	}
	switch o := m.orders[id]; {
	case o == nil:
		m.orders[id] = &modelOrder{'c', c.Quantity, sale.Token{}, c.Buyer}
		m.left += c.Quantity
		m.kept -= c.Quantity
		m.changes++
	case o.state == 'p':
		m.giveBack(o, 'c')
	case o.state == 'k':
		m.kept -= o.quantity
		m.giveBack(o, 'c')
	case o.state == 'd':
		o.state = 'c'
	}
	return do
}

func (m *model) seal(g *shard.Gate) func() {
	epoch := m.pickEpoch()
	limit := rapid.IntRange(1, 5).Draw(m.t, "limit")
	s, err := g.Seal(m.bench.Context(), m.sku, 0, epoch, limit)
	if epoch < m.epoch || (epoch == m.epoch && m.there && !m.sealed) {
		m.conflict(err)
		return func() {}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if epoch > m.epoch && m.there {
		m.before = m.epoch
	}
	m.there, m.sealed, m.epoch = true, true, epoch
	want := sale.SealedShare{Gone: !m.whole}
	if m.whole {
		want.Epoch = m.before
	}
	open := 0
	for _, o := range m.orders {
		if o.state == 'p' {
			open++
		}
	}
	if s.Gone != want.Gone || s.Epoch != want.Epoch || s.More != (open > limit) || len(s.Pending) != min(open, limit) {
		m.t.Fatalf("sealed %+v with %d undecided, want %+v", s, open, want)
	}
	for _, take := range s.Pending {
		o := m.orders[take.Order]
		if o == nil || o.state != 'p' || o.quantity != take.Quantity || o.token != take.Token || o.buyer != take.Buyer {
			m.t.Fatalf("undecided %+v, want %+v", take, o)
		}
	}
	return func() {
		if _, err := g.Seal(m.bench.Context(), m.sku, 0, epoch, limit); err != nil {
			m.t.Fatal(err)
		}
	}
}

// layer runs a step of a reshare, which must fail unless the share is sealed at the epoch.
func (m *model) layer(epoch int64, step func() error) (worked bool) {
	err := step()
	worked = m.there && m.sealed && epoch == m.epoch
	if worked != (err == nil) {
		m.t.Fatalf("there %t sealed %t, epoch %d of %d: %v", m.there, m.sealed, epoch, m.epoch, err)
	}
	return worked
}

func (m *model) tell(g *shard.Gate) func() {
	var kept, dropped []sale.PendingTake
	for _, id := range m.ids() {
		switch rapid.IntRange(0, 2).Draw(m.t, "told") {
		case 0:
			kept = append(kept, sale.PendingTake{Order: id})
		case 1:
			dropped = append(dropped, sale.PendingTake{Order: id})
		}
	}
	if len(kept)+len(dropped) == 0 {
		return func() {}
	}
	epoch := m.pickEpoch()
	do := func() error { return g.Tell(m.bench.Context(), m.sku, 0, epoch, kept, dropped) }
	if m.layer(epoch, do) {
		for _, take := range kept {
			if o := m.orders[take.Order]; o.state == 'p' {
				o.state = 'k'
				m.kept += o.quantity
			}
		}
		for _, take := range dropped {
			if o := m.orders[take.Order]; o.state == 'p' {
				m.giveBack(o, 'd')
			}
		}
	}
	return func() { m.layer(epoch, do) }
}

// ids are the known ones in a fixed order, so that a seed gives one history.
func (m *model) ids() []sale.OrderID {
	var ids []sale.OrderID
	for id := range m.orders {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b sale.OrderID) int { return int(a[15]) - int(b[15]) })
	return ids
}

func (m *model) wipe(g *shard.Gate) func() {
	epoch := m.pickEpoch()
	do := func() error { return g.Wipe(m.bench.Context(), m.sku, 0, epoch) }
	if m.layer(epoch, do) {
		clear(m.orders)
		clear(m.ever)
		m.left, m.initial, m.kept, m.short, m.whole = 0, 0, 0, 0, false
	}
	return func() { m.layer(epoch, do) }
}

func (m *model) fill(g *shard.Gate) func() {
	var rows []sale.Holding
	for range rapid.IntRange(1, 4).Draw(m.t, "rows") {
		id := m.pickID()
		rows = append(rows, sale.Holding{
			Order: id, Buyer: buyerOf(id), Quantity: rapid.Int64Range(1, 3).Draw(m.t, "quantity"),
			Token: sale.Token{Epoch: 1, Change: 77}, Closed: rapid.Bool().Draw(m.t, "closed"),
		})
	}
	epoch := m.pickEpoch()
	do := func() error { return g.Fill(m.bench.Context(), m.sku, 0, epoch, rows) }
	if m.layer(epoch, do) {
		for _, row := range rows {
			if m.orders[row.Order] != nil {
				continue
			}
			state := byte('k')
			if row.Closed {
				state = 'c'
			} else {
				m.kept += row.Quantity
				m.short += row.Quantity // sold before this share was laid out: not of its units
			}
			m.orders[row.Order] = &modelOrder{state, row.Quantity, row.Token, row.Buyer}
			m.ever[row.Buyer] = true
		}
	}
	return func() { m.layer(epoch, do) }
}

func (m *model) open(g *shard.Gate) func() {
	epoch, left := m.pickEpoch(), rapid.Int64Range(0, 8).Draw(m.t, "left")
	do := func() error { return g.Open(m.bench.Context(), m.sku, 0, epoch, left) }
	if m.there && m.sealed && epoch == m.epoch && m.pending() > 0 {
		m.conflict(do())
		return func() { m.conflict(do()) }
	}
	if m.layer(epoch, do) {
		m.sealed, m.whole = false, true
		m.left, m.initial, m.kept, m.short = left, left, 0, 0
		m.changes++
		return func() { m.must(do()) } // open already: nothing to do
	}
	return func() { m.layer(epoch, do) }
}
