package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stockade/biz/sale"
)

const (
	histories = 12
	steps     = 40
)

// agreesWithModel runs random histories and checks each answer against a model that decides takes one by one, in id
// order: a group must come out as if nobody had shared a transaction.
func agreesWithModel(t *testing.T, s Subject) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for h := range uint64(histories) {
		m := &model{
			t: t, s: s, rng: rand.New(rand.NewPCG(seed, h)),
			skus: map[string]*modelSKU{}, rows: map[sale.OrderID]*modelRow{},
		}
		for i := range 3 {
			id := fmt.Sprintf("m%d-%d", h, i)
			total := m.rng.Int64N(40)
			newSKU(t, s.DB, id, total, 4)
			m.skus[id] = &modelSKU{epoch: 1, live: 1, total: total}
			m.names = append(m.names, id)
		}
		for range steps {
			m.step()
			if t.Failed() {
				t.Fatalf("seed %d, history %d", seed, h)
			}
		}
	}
}

type modelSKU struct{ epoch, live, total, promised int64 }

type modelRow struct {
	take   sale.Take
	order  sale.Order
	closed bool
}

type model struct {
	t     *testing.T
	s     Subject
	rng   *rand.Rand
	names []string
	skus  map[string]*modelSKU
	rows  map[sale.OrderID]*modelRow
	past  []sale.Take
}

func (m *model) step() {
	switch m.rng.IntN(8) {
	case 0:
		m.begin()
	case 1:
		m.finish()
	case 2:
		m.close()
	default:
		m.promise()
	}
	for name, k := range m.skus {
		b := wantBooks(m.t, m.s.DB, name)
		if b.Promised != k.promised || b.Total != k.total {
			m.t.Errorf("%s: books %+v, the model says %+v", name, b, *k)
		}
	}
}

func (m *model) sku() (string, *modelSKU) {
	name := m.names[m.rng.IntN(len(m.names))]
	return name, m.skus[name]
}

func (m *model) begin() {
	name, k := m.sku()
	add := m.rng.Int64N(30) - 10
	snap, err := m.s.DB.BeginReshare(context.Background(), name, k.epoch, sale.LedgerChange{AddTotal: add})
	if k.total+add < k.promised {
		if err == nil {
			m.t.Errorf("%s: total %d%+d with %d promised was taken", name, k.total, add, k.promised)
		}
		return
	}
	must(m.t, err)
	k.epoch++
	k.total += add
	page, err := snap.Holdings(context.Background(), 0, 10_000)
	must(m.t, err)
	live := int64(0)
	for _, h := range page {
		if r := m.rows[h.Order]; r == nil || r.take.SKU != name || h.Closed != r.closed || h.Token != r.take.Token {
			m.t.Errorf("%s: holding %+v, the model says %+v", name, h, r)
		}
		if !h.Closed {
			live += h.Quantity
		}
	}
	if l := snap.Listing().Ledger; live != k.promised || l.Promised != live || l.Total != k.total {
		m.t.Errorf("%s: snapshot %+v with %d live units, the model says %+v", name, l, live, *k)
	}
	must(m.t, snap.Close())
}

func (m *model) finish() {
	name, k := m.sku()
	must(m.t, m.s.DB.FinishReshare(context.Background(), name, k.epoch, m.rng.IntN(2) == 0, "g"))
	k.live = k.epoch
}

func (m *model) close() {
	for _, r := range m.rows { // any one
		if !r.closed {
			closeOrder(m.t, m.s, r.order, "CANCELLED")
			r.closed = true
			r.order.State, r.order.Reason = sale.OrderClosed, "CANCELLED"
			m.skus[r.take.SKU].promised -= r.take.Quantity
			return
		}
	}
}

// promise sends a group of new takes, repetitions, and takes of old orders from another share.
func (m *model) promise() {
	var takes []sale.Take
	for range 1 + m.rng.IntN(9) {
		if len(m.past) > 0 && m.rng.IntN(4) == 0 {
			old := m.past[m.rng.IntN(len(m.past))]
			old.Epoch = m.skus[old.SKU].live
			if m.rng.IntN(3) == 0 {
				old.Token.Change += 1 << 32
			}
			takes = append(takes, old)
			continue
		}
		name, k := m.sku()
		fresh := take(name, buyer(m.rng.IntN(5)), 1+m.rng.Int64N(3), 4)
		fresh.Epoch = k.live - int64(m.rng.IntN(8)/7)
		takes = append(takes, fresh)
		m.past = append(m.past, fresh)
	}
	m.rng.Shuffle(len(takes), func(i, j int) { takes[i], takes[j] = takes[j], takes[i] })
	got := promise(m.t, m.s.DB, takes...)

	order := make([]int, len(takes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(takes[a].Order[:], takes[b].Order[:]) })
	refused := map[sale.OrderID]int{}
	for _, i := range order {
		if first, again := refused[takes[i].Order]; again {
			want := got[first]
			if takes[i] != takes[first] {
				want = sale.Decision{Outcome: sale.NotTaken, Err: got[i].Err}
			}
			if got[i] != want {
				m.t.Errorf("a second take %+v of a refused order: %+v, want %+v", takes[i], got[i], want)
			}
			continue
		}
		want := m.decide(takes[i], got[i])
		if cmp.Compare(want.Outcome, sale.FoundElse) > 0 {
			refused[takes[i].Order] = i
		}
		if got[i] != want {
			m.t.Errorf("take %+v: %+v, the model says %+v", takes[i], got[i], want)
		}
	}
}

// decide answers one take as if it were alone. Of a promise it takes the times over from the answer.
func (m *model) decide(k sale.Take, got sale.Decision) sale.Decision {
	if r := m.rows[k.Order]; r != nil {
		if r.take.Share == k.Share && r.take.Token == k.Token {
			return sale.Decision{Outcome: sale.Found, Order: r.order}
		}
		return sale.Decision{Outcome: sale.FoundElse, Order: r.order}
	}
	ledger := m.skus[k.SKU]
	if ledger.live != ledger.epoch || k.Epoch != ledger.live {
		return sale.Decision{Outcome: sale.Fenced}
	}
	if left := ledger.total - ledger.promised; left < k.Quantity {
		return sale.Decision{Outcome: sale.Short, Available: left}
	}
	var holds int64
	for _, r := range m.rows {
		if r.take.SKU == k.SKU && r.take.Buyer == k.Buyer && !r.closed {
			holds += r.take.Quantity
		}
	}
	if holds+k.Quantity > k.Limit {
		return sale.Decision{Outcome: sale.OverLimit, Live: holds}
	}
	ledger.promised += k.Quantity
	o := sale.Order{
		ID: k.Order, SKU: k.SKU, Buyer: k.Buyer, Quantity: k.Quantity, State: sale.OrderQueued,
		AcceptedAt: got.Order.AcceptedAt, ExpiresAt: got.Order.AcceptedAt.Add(k.Window),
	}
	m.rows[k.Order] = &modelRow{take: k, order: o}
	return sale.Decision{Outcome: sale.Promised, Order: o}
}
