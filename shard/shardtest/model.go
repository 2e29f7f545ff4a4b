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
	state    byte // p undecided, a undecided and acknowledged, k kept, d doubtful, c closed
	quantity int64
	token    sale.Token
	buyer    string
}

func (o *modelOrder) undecided() bool { return o != nil && (o.state == 'p' || o.state == 'a') }

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
	balance int64 // what is left, or below 0 what is missing
	initial int64
	kept    int64 // units that left the share for good since it was opened, minus those that came back
	laid    int64 // units that were sold before it was opened
	changes int64
	orders  map[sale.OrderID]*modelOrder
	takes   []sale.Settlement     // every take there ever was, for late settlements
	ever    map[string]bool       // buyers with a field
	strays  map[sale.OrderID]bool // in the journal without being undecided
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
		m := &model{bench: b, t: rt, gates: gates, orders: map[sale.OrderID]*modelOrder{}}
		m.ever, m.strays = map[string]bool{}, map[sale.OrderID]bool{}
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			m.step()
			m.check()
		}
	})
}

func (m *model) step() {
	steps := []func(g *shard.Gate) func(){m.seal, m.tell, m.wipe, m.fill, m.open, m.open, m.open, m.credit, m.drop, m.stray}
	if m.there && !m.sealed {
		steps = []func(g *shard.Gate) func(){
			m.admit, m.admit, m.admit, m.admit, m.admit, m.settle, m.settle, m.settle, m.credit, m.seal,
			m.held, m.drop, m.stray,
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
		if o.buyer == buyer && o.undecided() {
			undecided += o.quantity
		}
		if o.buyer == buyer && (o.undecided() || o.state == 'k') {
			all += o.quantity
		}
	}
	return all, undecided
}

func (m *model) pending() (n int64) {
	for _, o := range m.orders {
		if o.undecided() {
			n += o.quantity
		}
	}
	return n
}

func (m *model) left() int64 { return max(0, m.balance) }

func (m *model) admit(g *shard.Gate) func() {
	id := m.pickID()
	r := sale.AdmitRequest{
		SKU: m.sku, Epoch: m.pickEpoch(), Order: id, Buyer: buyerOf(id),
		Quantity: rapid.Int64Range(1, 3).Draw(m.t, "quantity"), Limit: rapid.Int64Range(1, 5).Draw(m.t, "limit"),
		Acknowledge: rapid.Bool().Draw(m.t, "acknowledge"),
	}
	want := m.predict(r)
	got, err := g.Admit(m.bench.Context(), r)
	if err != nil {
		m.t.Fatal(err)
	}
	if want.Verdict == sale.Admitted {
		m.balance -= r.Quantity
		m.changes++
		want.Left, want.Changes = m.balance, m.changes
		want.Token = sale.Token{Epoch: m.epoch, Change: m.changes}
		m.orders[id] = &modelOrder{'p', r.Quantity, want.Token, r.Buyer}
		delete(m.strays, id)
		m.ever[r.Buyer] = true
		m.takes = append(m.takes, settled(r, want, false))
	}
	if o := m.orders[id]; r.Acknowledge && r.Epoch == m.epoch && o != nil && o.state == 'p' {
		o.state = 'a' // admitted now, or known
	}
	if got != want {
		m.t.Fatalf("%+v: %+v, want %+v", r, got, want)
	}
	return func() {
		if got.Verdict == sale.Admitted || got.Verdict == sale.Known {
			again, err := g.Admit(m.bench.Context(), r)
			marked := got.Acknowledged || (got.Verdict == sale.Admitted && r.Acknowledge)
			if err != nil || again.Verdict != sale.Known || again.Token != got.Token || again.Acknowledged != marked {
				m.t.Fatalf("admitted again: %+v, %v", again, err)
			}
		}
	}
}

func (m *model) predict(r sale.AdmitRequest) sale.Admission {
	a := sale.Admission{Epoch: m.epoch, Left: m.left(), Changes: m.changes}
	all, undecided := m.units(r.Buyer)
	o := m.orders[r.Order]
	switch {
	case r.Epoch != m.epoch:
		a.Verdict = sale.Stale
	case o != nil && o.state != 'd':
		a.Verdict, a.Token, a.Quantity, a.Decided = sale.Known, o.token, o.quantity, !o.undecided()
		a.Acknowledged = o.state == 'a' || (o.state == 'p' && r.Acknowledge)
	case all-undecided+r.Quantity > r.Limit:
		a.Verdict, a.Doubtful = sale.AtLimit, o != nil
	case all+r.Quantity > r.Limit:
		a.Verdict, a.Doubtful = sale.NearLimit, o != nil
	case m.left() < r.Quantity:
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
	s.Unmarked = rapid.Bool().Draw(m.t, "unmarked")
	do := func() {
		if err := g.Settle(m.bench.Context(), s); err != nil {
			m.t.Fatal(err)
		}
	}
	do()
	o := m.orders[s.Order]
	if !o.undecided() {
		delete(m.strays, s.Order)
	}
	if o != nil && o.token == s.Token {
		switch {
		case o.undecided() && s.Kept:
			o.state = 'k'
			m.kept += o.quantity
		case o.state == 'a' && s.Unmarked:
		case o.undecided():
			m.giveBack(o, 'd')
		case o.state == 'd' && s.Kept:
			o.state = 'k'
			m.kept += o.quantity
			m.balance -= o.quantity
			m.changes++
		}
	}
	return do
}

func (m *model) giveBack(o *modelOrder, state byte) {
	o.state = state
	m.balance += o.quantity
	m.changes++
}

func (m *model) seal(g *shard.Gate) func() {
	epoch := m.pickEpoch()
	limit := rapid.IntRange(1, 5).Draw(m.t, "limit")
	s, err := g.Seal(m.bench.Context(), m.sku, 0, epoch, limit)
	if m.there && (epoch < m.epoch || (epoch == m.epoch && !m.sealed)) {
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
	open := len(m.strays)
	for _, o := range m.orders {
		if o.undecided() {
			open++
		}
	}
	if s.Gone != want.Gone || s.Epoch != want.Epoch || s.More != (open > limit) || len(s.Pending) != min(open, limit) {
		m.t.Fatalf("sealed %+v with %d undecided, want %+v", s, open, want)
	}
	for _, take := range s.Pending {
		m.expectTake(take)
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
			if o := m.orders[take.Order]; o.undecided() {
				o.state = 'k'
				m.kept += o.quantity
			}
			delete(m.strays, take.Order)
		}
		for _, take := range dropped {
			if o := m.orders[take.Order]; o.undecided() {
				m.giveBack(o, 'd')
			}
			delete(m.strays, take.Order)
		}
	}
	return func() { m.layer(epoch, do) }
}

// ids are the known ones and the strays in a fixed order, so that a seed gives one history.
func (m *model) ids() []sale.OrderID {
	var ids []sale.OrderID
	for id := range m.orders {
		ids = append(ids, id)
	}
	for id := range m.strays {
		if m.orders[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b sale.OrderID) int { return int(a[15]) - int(b[15]) })
	return ids
}

func (m *model) wipe(g *shard.Gate) func() {
	epoch := m.pickEpoch()
	do := func() error { return g.Wipe(m.bench.Context(), m.sku, 0, epoch) }
	if m.layer(epoch, do) {
		m.forget()
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
				m.laid += row.Quantity
			}
			m.orders[row.Order] = &modelOrder{state, row.Quantity, row.Token, row.Buyer}
			m.ever[row.Buyer] = true
		}
	}
	return func() { m.layer(epoch, do) }
}

func (m *model) open(g *shard.Gate) func() {
	epoch, left := m.pickEpoch(), rapid.Int64Range(0, 8).Draw(m.t, "left")
	do := func() error { return g.OpenAll(m.bench.Context(), m.sku, []sale.Share{0}, epoch, []int64{left}) }
	if m.there && m.sealed && epoch == m.epoch && m.pending()+int64(len(m.strays)) > 0 {
		m.conflict(do())
		return func() { m.conflict(do()) }
	}
	if m.layer(epoch, do) {
		m.sealed, m.whole = false, true
		m.balance, m.initial, m.kept, m.laid = left, left, 0, 0
		m.changes++
		return func() { m.must(do()) } // open already: nothing to do
	}
	return func() { m.layer(epoch, do) }
}
