package service_test

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// sweep settles every undecided take at once.
func (h *history) sweep() {
	i, node := h.pickNode(2)
	listing, err := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(err)
	_, err = node.sweeper.Sweep(h.Context(), listing, 0)
	fired, _ := h.afterwards(i)
	if !fired {
		h.must(err)
		if !h.model.halfLaid {
			h.model.undecided = false
		}
	}
	h.stockChanged()
}

// adjust changes the total.
func (h *history) adjust() {
	add := rapid.Int64Range(-6, 6).Filter(func(n int64) bool { return n != 0 }).Draw(h.T, "add")
	i, node := h.pickNode(12)
	_, err := node.skus.Adjust(h.Context(), h.sku.ID, add)
	fired, _ := h.afterwards(i)
	listing, readErr := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(readErr)
	var bad *sale.InputError
	switch total := listing.Ledger.Total; {
	case errors.As(err, &bad):
		if h.model.total+add >= h.model.promised() || total != h.model.total {
			h.Fatalf("adjust %+d refused (%v) with total %d, promised %d", add, err, total, h.model.promised())
		}
		return
	case err == nil && total != h.model.total+add:
		h.Fatalf("adjust %+d made the total %d, was %d", add, total, h.model.total)
	case total != h.model.total && total != h.model.total+add:
		h.Fatalf("a failed adjust %+d made the total %d, was %d", add, total, h.model.total)
	default:
		h.model.total = total
	}
	h.reshared(fired, err)
}

// reshare lays the stock out anew.
func (h *history) reshare() {
	i, node := h.pickNode(12)
	order := service.ReshareOrder{Reason: "test", Full: rapid.Bool().Draw(h.T, "full"), Tail: rapid.Bool().Draw(h.T, "tail")}
	err := node.resharer.Run(h.Context(), h.sku.ID, order)
	fired, _ := h.afterwards(i)
	h.reshared(fired, err)
}

// reslot gives the SKU another slot count.
func (h *history) reslot() {
	slots := rapid.IntRange(1, 6).Draw(h.T, "slots")
	before, readErr := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(readErr)
	i, node := h.pickNode(16)
	_, err := node.skus.Slots(h.Context(), h.sku.ID, slots)
	fired, _ := h.afterwards(i)
	listing, readErr := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(readErr)
	if err == nil && listing.Slots != slots {
		h.Fatalf("%d slots asked for, there are %d", slots, listing.Slots)
	}
	h.sku.Slots = listing.Slots // a reshare that died may have changed them
	if err == nil && listing.Ledger.Epoch == before.Ledger.Epoch {
		return // it had as many already: nothing was laid out
	}
	h.reshared(fired, err)
}

// reshared notes what a reshare that ended so means for the gate.
func (h *history) reshared(fired bool, err error) {
	h.stockChanged()
	listing, readErr := h.lab.db.Listing(h.Context(), h.sku.ID)
	h.must(readErr)
	if err != nil {
		if !fired && !errors.Is(err, sale.ErrConflict) {
			h.Fatalf("reshare failed without a fault: %v", err)
		}
		h.model.halfLaid = h.model.halfLaid || !listing.Ledger.Live()
		return
	}
	h.model.undecided, h.model.halfLaid = false, false
	// A light one cannot see which ids and counts of its own epoch were lost; only a full one brings them back.
	full := listing.Ledger.LaidEpoch == listing.Ledger.LiveEpoch
	h.model.forgot = h.model.forgot && !full
}

// gateMatches tells whether what is left in the gate is what the truth says.
func (h *history) gateMatches() bool {
	var left int64
	for _, f := range h.figures() {
		if f.Gone || f.Sealed {
			return false
		}
		left += f.Left + f.Pending
	}
	return left == h.model.total-h.model.promised()
}

// copyGate keeps a copy of what Redis holds.
func (h *history) copyGate() {
	var err error
	h.old, err = h.lab.remember(h.Context(), h.sku)
	h.must(err)
}

// loseGate makes Redis forget its last writes, or everything. Redis' own restart is what a node would see of it, so
// the next reshare has to be a full one; here it is asked for by name.
func (h *history) loseGate() {
	h.must(h.lab.putBack(h.Context(), h.sku, h.old))
	h.model.forgot, h.model.undecided = true, true // the older copy may hold takes that were settled since
	if rapid.Bool().Draw(h.T, "healed at once") {
		h.must(h.nodes[0].resharer.Run(h.Context(), h.sku.ID, service.ReshareOrder{Reason: "loss", Full: true}))
		h.model.forgot, h.model.undecided, h.model.halfLaid = false, false, false
	}
	h.stockChanged()
}

// look lets a node read figures and winners, so that its flags work.
func (h *history) look() {
	i := rapid.IntRange(0, 1).Draw(h.T, "node")
	h.must(h.nodes[i].watcher.Look(h.Context(), h.sku.ID))
}

func (h *history) wait() {
	h.lab.clock.advance(time.Duration(rapid.IntRange(100, 3000).Draw(h.T, "ms")) * time.Millisecond)
}

func (h *history) restart() { h.replaceNode(rapid.IntRange(0, 1).Draw(h.T, "node")) }

// pause holds the sale or goes on with it.
func (h *history) pause() {
	move, to := h.nodes[0].skus.Pause, sale.Paused
	if h.sku.State == sale.Paused {
		move, to = h.nodes[0].skus.Open, sale.Open
	}
	_, err := move(h.Context(), h.sku.ID)
	h.must(err)
	h.nodes[1].catalogue.Forget(h.sku.ID) // the hint that reaches the other node
	h.sku.State = to
}

func (h *history) figures() []sale.Figures {
	figures, err := h.gates[0].Peek(h.Context(), h.sku.ID, h.sku.Slots)
	h.must(err)
	return figures
}

// conservation compares MySQL with the model, and the gate with MySQL.
func (h *history) conservation() {
	books, err := h.lab.db.Books(h.Context(), h.sku.ID)
	h.must(err)
	if books.Promised != books.LiveUnits || books.Promised > books.Total || books.OverLimit != 0 {
		h.Fatalf("the books do not agree: %+v", books)
	}
	if books.Total != h.model.total || books.LiveUnits != h.model.promised() || books.LiveOrders != int64(len(h.model.orders)) {
		h.Fatalf("MySQL has %+v, the model %d orders of %d units, total %d", books, len(h.model.orders), h.model.promised(), h.model.total)
	}
	if h.model.forgot || h.model.halfLaid {
		return
	}
	var left, pending int64
	for _, f := range h.figures() {
		left, pending = left+f.Left, pending+f.Pending
	}
	drift := books.Total - books.Promised - left - pending
	if drift > 0 || drift < -pending || (!h.model.undecided && (drift != 0 || pending != 0)) {
		h.Fatalf("drift %d with %d left and %d pending: %+v", drift, left, pending, books)
	}
}

// settleAll repairs everything and checks that nothing is left over: every order is there and answered to its winner on
// nodes that know nothing, and every unit is promised or left.
func (h *history) settleAll() {
	h.must(h.nodes[0].resharer.Run(h.Context(), h.sku.ID, service.ReshareOrder{Reason: "end", Full: true}))
	h.model.undecided, h.model.forgot, h.model.halfLaid = false, false, false
	for i := range h.nodes {
		h.replaceNode(i)
	}
	h.conservation()
	if !h.gateMatches() {
		h.Fatalf("after a full reshare the gate does not match: %+v", h.figures())
	}
	for id := range h.model.unknown {
		h.resolve(id)
	}
	for id, o := range h.model.orders {
		for _, key := range modelKeys {
			req, of := modelRequest(service.PurchaseRequest{SKU: h.sku.ID, Buyer: o.buyer, Key: key, Quantity: o.quantity})
			if of != id {
				continue
			}
			for i, n := range h.nodes {
				r, err := n.sales.Purchase(h.Context(), req)
				if err != nil || r.Code != sale.Accepted || !r.Replayed || r.Order.ID != id {
					h.Fatalf("node %d: the winner of %v got %+v, %v", i, o, r, err)
				}
				n.outcome()
			}
		}
	}
	h.conservation()
}
