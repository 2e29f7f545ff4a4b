package service_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/shard"
)

// flagLifetime is how long cache.DefaultConfig lets a node answer from what it noted.
const flagLifetime = 1500 * time.Millisecond

// win is one order that exists for sure.
type win struct {
	buyer    string
	quantity int64
	node     int       // where it was won
	at       time.Time // by the lab's clock
}

// model is an inventory that needs no Redis, no shares and no recovery: what the answers are checked against.
type model struct {
	total   int64
	limit   int64
	orders  map[sale.OrderID]win
	unknown map[sale.OrderID]win // asked for, and nobody was told what became of it

	// What the gate may have got wrong since it last matched the truth.
	undecided bool // takes whose end it does not know
	forgot    bool // keys lost or put back from an older copy
	halfLaid  bool // a reshare that did not finish
}

func (m *model) promised() (n int64) {
	for _, o := range m.orders {
		n += o.quantity
	}
	return n
}

func (m *model) unitsOf(buyer string) (n int64) {
	for _, o := range m.orders {
		if o.buyer == buyer {
			n += o.quantity
		}
	}
	return n
}

// history is one random life of a SKU on two nodes.
type history struct {
	*rapid.T
	lab     *lab
	gates   [2]*shard.Gate
	nodes   [2]*testNode
	sku     sale.SKU
	model   model
	old     copyOfGate
	changed time.Time // when the stock last changed, by the lab's clock
}

var buyers = []string{"ann", "bob", "cy", "dee", "eve"}

// byToken is the key for which a request comes with a purchase token instead.
const byToken = "token"

var modelKeys = []string{"k1", "k2", byToken}

// modelRequest returns the request with its order id; each buyer has one token for each SKU.
func modelRequest(req service.PurchaseRequest) (service.PurchaseRequest, sale.OrderID) {
	id := sale.DeriveOrderID(req.SKU, req.Buyer, req.Key)
	if req.Key == byToken {
		id[6] = id[6]&0x0f | 0x70 // a version 7, as tokens have it
		req.Key, req.Order = "", id
	}
	return req, id
}

// modelSeed makes every run go through the same histories, so that a red run is one that a change made red.
// `make explore` takes a new one each time.
const modelSeed = "20260102"

// setRapid sets rapid's flags, but not a seed that was asked for; rapid prints the seed of a failure.
func setRapid(t *testing.T, histories int) {
	flags := map[string]string{"rapid.checks": fmt.Sprint(histories), "rapid.nofailfile": "true"}
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		flags["rapid.seed"] = modelSeed
	}
	for name, value := range flags {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// runHistories checks random histories against the model. Labs run side by side under one seed: each throws away as many
// numbers as it has predecessors, and so has histories of its own.
func runHistories(t *testing.T, l *lab, predecessors int) {
	gates := [2]*shard.Gate{l.gate(t), l.gate(t)}
	rapid.Check(t, func(rt *rapid.T) {
		for range predecessors {
			rapid.Uint64().Draw(rt, "thrown away")
		}
		h := &history{T: rt, lab: l, gates: gates}
		h.begin()
		defer h.end()
		actions := []func(){
			h.buy, h.buy, h.buy, h.buy, h.buy, h.buy, h.buy, h.buy,
			h.sweep, h.adjust, h.reshare, h.reslot, h.copyGate, h.loseGate, h.look, h.wait, h.restart, h.pause,
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "action")()
			h.conservation()
		}
		h.settleAll()
	})
}

func (h *history) begin() {
	for i := range h.nodes {
		h.nodes[i] = h.lab.node(h.gates[i])
	}
	h.model = model{
		total:  rapid.Int64Range(1, 15).Draw(h.T, "total"),
		limit:  rapid.Int64Range(1, 4).Draw(h.T, "limit"),
		orders: map[sale.OrderID]win{}, unknown: map[sale.OrderID]win{},
	}
	var err error
	h.sku, err = h.lab.newSKU(h.Context(), h.nodes[0], h.model.total, sale.SKU{
		Limit: h.model.limit, Slots: rapid.IntRange(1, 4).Draw(h.T, "slots"), ReservePct: rapid.IntRange(0, 50).Draw(h.T, "reserve %"),
	})
	h.must(err)
}

func (h *history) end() {
	for _, n := range h.nodes {
		n.stop()
	}
}

func (h *history) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("unexpected error: %v", err)
	}
}

// pickNode draws a node and plans what goes wrong on it.
func (h *history) pickNode(steps int) (int, *testNode) {
	i := rapid.IntRange(0, 1).Draw(h.T, "node")
	kind := noFault
	if rapid.IntRange(0, 3).Draw(h.T, "faulty?") == 0 {
		kind = faultKind(rapid.IntRange(1, 4).Draw(h.T, "fault"))
	}
	at := 0
	if kind != noFault {
		at = rapid.IntRange(0, steps).Draw(h.T, "at step")
	}
	h.nodes[i].plan(at, kind)
	return i, h.nodes[i]
}

// afterwards ends an operation: a node that died comes back with an empty memory.
func (h *history) afterwards(i int) (fired, dead bool) {
	fired, dead = h.nodes[i].outcome()
	if dead {
		h.replaceNode(i)
	}
	h.nodes[i].plan(0, noFault)
	return fired, dead
}

func (h *history) replaceNode(i int) {
	h.nodes[i].stop()
	h.nodes[i] = h.lab.node(h.gates[i])
}

// buy sends one purchase and checks the answer.
func (h *history) buy() {
	req, id := modelRequest(service.PurchaseRequest{
		SKU:      h.sku.ID,
		Buyer:    rapid.SampledFrom(buyers).Draw(h.T, "buyer"),
		Quantity: rapid.Int64Range(1, 3).Draw(h.T, "quantity"),
		Key:      rapid.SampledFrom(modelKeys).Draw(h.T, "key"),
	})
	figures := h.figures()
	i, node := h.pickNode(6)
	r, err := node.sales.Purchase(h.Context(), req)
	fired, dead := h.afterwards(i)
	if fired || h.model.halfLaid { // behind a half-way reshare a share may admit what no promise takes any more
		h.model.undecided = true
	}
	asked := win{buyer: req.Buyer, quantity: req.Quantity, node: i, at: h.lab.clock.Now()}
	h.Logf("buy %+v on %d: %v %s %v (fault: %v, died: %v)", req, i, r.Code, r.Reason, err, fired, dead)
	if dead { // nobody heard the answer
		h.model.unknown[id] = asked
		h.resolve(id)
		return
	}
	h.judge(id, asked, r, err, fired, figures)
}

// judge compares an answer with the model.
func (h *history) judge(id sale.OrderID, asked win, r sale.Result, err error, fired bool, before []sale.Figures) {
	was, exists := h.model.orders[id]
	if errors.Is(err, sale.ErrKeyReused) {
		// The gate may know the id from an undecided take of another quantity.
		if (!exists || was.quantity == asked.quantity) && !h.model.undecided {
			h.Fatalf("key refused as reused: order %v, asked %v", was, asked)
		}
		return
	}
	h.must(err)
	if exists && was.quantity != asked.quantity && r.Code == sale.Accepted {
		h.Fatalf("the same key with another quantity was accepted: %v, asked %v", was, asked)
	}
	units, available := h.model.unitsOf(asked.buyer), h.model.total-h.model.promised()
	switch r.Code {
	case sale.Accepted:
		h.accepted(id, asked, r, exists)
	case sale.Busy:
		if !fired && !h.model.forgot && !h.model.halfLaid {
			h.Fatalf("BUSY (%s) without a fault", r.Reason)
		}
		if r.Unknown {
			h.model.unknown[id] = asked
			h.resolve(id)
		}
	case sale.LimitReached:
		if units+asked.quantity <= h.model.limit && !h.model.forgot {
			h.Fatalf("LIMIT_REACHED with %d of %d units and %d asked for", units, h.model.limit, asked.quantity)
		}
		h.notAWinner(exists && asked.quantity <= h.model.limit, was, asked, r)
	case sale.SoldOut:
		if available >= asked.quantity && !h.model.undecided && !h.model.forgot && !h.staleFigures() {
			h.Fatalf("SOLD_OUT with %d units available and %d asked for", available, asked.quantity)
		}
		h.notAWinner(exists, was, asked, r)
	case sale.Retry:
		h.retry(asked, available, before)
		h.notAWinner(exists, was, asked, r)
	case sale.NotOnSale:
		if h.sku.State != sale.Paused {
			h.Fatalf("NOT_ON_SALE (%s) while open", r.Reason)
		}
		h.notAWinner(exists, was, asked, r)
	default:
		h.Fatalf("unexpected verdict %v", r.Code)
	}
	// What MySQL holds is the last word on orders nobody could know about.
	h.resolve(id)
}

// staleFigures tells whether a node may still answer from figures that it noted before the stock changed last.
func (h *history) staleFigures() bool {
	return h.lab.clock.Now().Before(h.changed.Add(flagLifetime))
}

// stockChanged notes that units went, or came back, without every node hearing of it.
func (h *history) stockChanged() { h.changed = h.lab.clock.Now() }

func (h *history) accepted(id sale.OrderID, asked win, r sale.Result, exists bool) {
	if r.Order.ID != id || r.Order.Buyer != asked.buyer || r.Order.Quantity != asked.quantity || r.Order.SKU != h.sku.ID {
		h.Fatalf("accepted as another order: %+v", r.Order)
	}
	if want := r.Order.AcceptedAt.Add(h.sku.PaymentWindow); !r.Order.ExpiresAt.Equal(want) {
		h.Fatalf("expires_at %v, want accepted_at + window = %v", r.Order.ExpiresAt, want)
	}
	_, perhaps := h.model.unknown[id]
	if !exists && !perhaps && r.Replayed {
		h.Fatalf("a first purchase was answered as a repetition")
	}
	if exists && !r.Replayed {
		h.Fatalf("a repetition was answered as a first purchase")
	}
	if !exists {
		h.won(id, asked)
	}
}

// won enters an order, within stock and limit.
func (h *history) won(id sale.OrderID, o win) {
	delete(h.model.unknown, id)
	h.model.orders[id] = o
	h.stockChanged()
	if n := h.model.promised(); n > h.model.total {
		h.Fatalf("oversold: %d of %d", n, h.model.total)
	}
	if n := h.model.unitsOf(o.buyer); n > h.model.limit {
		h.Fatalf("%s has %d units, the limit is %d", o.buyer, n, h.model.limit)
	}
}

// notAWinner fails if a refusal met the winner of that order, but for what I3 allows: on another node, for a flag's
// lifetime after the win, SOLD_OUT or RETRY may come first.
func (h *history) notAWinner(exists bool, was, asked win, r sale.Result) {
	if !exists || was.quantity != asked.quantity || h.model.forgot {
		return
	}
	flagged := r.Code == sale.SoldOut || r.Code == sale.Retry
	if flagged && was.node != asked.node && h.lab.clock.Now().Before(was.at.Add(flagLifetime)) {
		return
	}
	h.Fatalf("a winner asked again and got %v", r.Code)
}

// retry checks that RETRY has a reason: enough units, none of them in this buyer's reach, or undecided ones in the way.
func (h *history) retry(asked win, available int64, before []sale.Figures) {
	if h.model.undecided || h.model.forgot || h.staleFigures() {
		return
	}
	home := sale.Home(xxhash.Sum64String(asked.buyer), h.sku.Slots)
	for _, f := range before {
		if (f.Share == home || f.Share == sale.Reserve) && f.Left >= asked.quantity {
			h.Fatalf("RETRY while share %s had %d units", f.Share, f.Left)
		}
	}
	if available < asked.quantity {
		h.Fatalf("RETRY with %d units available and %d asked for", available, asked.quantity)
	}
}

// resolve looks an order up whose outcome nobody was told. It may appear only if somebody asked for it.
func (h *history) resolve(id sale.OrderID) {
	asked, perhaps := h.model.unknown[id]
	if !perhaps {
		return
	}
	order, err := h.lab.db.Order(h.Context(), asked.buyer, id)
	if errors.Is(err, sale.ErrNotFound) {
		return
	}
	h.must(err)
	asked.quantity = order.Quantity
	h.won(id, asked)
}

func TestModelEmbedded(t *testing.T) {
	const labs = 4
	setRapid(t, embeddedHistories/labs)
	for i := range labs {
		t.Run(fmt.Sprint("lab ", i), func(t *testing.T) {
			t.Parallel()
			runHistories(t, newLab(t), i)
		})
	}
}
