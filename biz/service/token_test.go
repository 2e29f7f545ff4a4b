package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// tokenFor is a purchase with a purchase token that was checked.
func tokenFor(t *testing.T, sku, buyer string) service.PurchaseRequest {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return service.PurchaseRequest{SKU: sku, Buyer: buyer, Quantity: 1, Order: sale.OrderID(id)}
}

// untilVerdict asks again while there is no verdict.
func untilVerdict(t *testing.T, n *testNode, req service.PurchaseRequest) (sale.Result, error) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		r, err := n.sales.Purchase(t.Context(), req)
		if err != nil || (r.Code != sale.Busy && r.Code != sale.Retry) {
			return r, err
		}
		if time.Now().After(end) {
			t.Fatalf("no verdict: %+v", r)
		}
	}
}

// tokenWays are the ways of a purchase on which a token has to be one order.
var tokenWays = map[string]func(t *testing.T, l *lab, n *testNode, sku sale.SKU){
	"outbox": func(*testing.T, *lab, *testNode, sale.SKU) {},
	"journal": func(t *testing.T, _ *lab, n *testNode, _ sale.SKU) {
		setToggle(t, n, sale.ToggleDurability, sale.DurabilityJournal)
	},
	"path mysql": func(t *testing.T, l *lab, n *testNode, sku sale.SKU) {
		l.clock.advance(time.Second) // the rate of the path begins at nothing
		if _, err := n.skus.Path(t.Context(), sku.ID, sale.ModeMySQL); err != nil {
			t.Fatal(err)
		}
	},
}

func setToggle(t *testing.T, n *testNode, name, value string) {
	t.Helper()
	if err := n.toggles.Set(t.Context(), sale.Toggle{Name: name, Value: value, Reason: "test", Actor: "test"}); err != nil {
		t.Fatal(err)
	}
}

// twoNodes are nodes of one lab that know a SKU of so many units.
func twoNodes(t *testing.T, l *lab, total int64, sku sale.SKU) ([2]*testNode, sale.SKU) {
	t.Helper()
	var nodes [2]*testNode
	for i := range nodes {
		nodes[i] = l.node(l.gate(t))
		t.Cleanup(nodes[i].stop)
	}
	sku, err := l.newSKU(t.Context(), nodes[0], total, sku)
	if err != nil {
		t.Fatal(err)
	}
	return nodes, sku
}

// A token that is used a hundred times at the same time, on two nodes, makes one order; everybody hears of that one or
// has to ask again, and the units of it are gone once.
func TestATokenUsedManyTimesIsOneOrder(t *testing.T) {
	for way, begin := range tokenWays {
		t.Run(way, func(t *testing.T) {
			l := newLab(t)
			nodes, sku := twoNodes(t, l, 50, sale.SKU{Limit: 5, Slots: 2, ReservePct: 5})
			for _, n := range nodes {
				begin(t, l, n, sku)
			}
			for _, n := range nodes {
				n.catalogue.Forget("")
				n.toggles.Load(t.Context())
			}
			req := tokenFor(t, sku.ID, "ada")
			won := atOnce(t, nodes, req, 100)
			if won == 0 {
				t.Log("nobody was told ACCEPTED at once")
			}
			for i, n := range nodes {
				r, err := untilVerdict(t, n, req)
				if err != nil || r.Code != sale.Accepted || r.Order.ID != req.Order || !r.Replayed {
					t.Errorf("node %d, asked again: %+v, %v", i, r, err)
				}
			}
			for _, n := range nodes {
				n.outcome()
			}
			l.wantOneOrder(t, nodes[0], sku, req)
			two := req
			two.Quantity = 2
			if r, err := nodes[1].sales.Purchase(t.Context(), two); !errors.Is(err, sale.ErrKeyReused) {
				t.Errorf("the token with another quantity: %+v, %v", r, err)
			}
		})
	}
}

// atOnce sends a request to the nodes in turn, all at the same time, and returns how many heard ACCEPTED.
func atOnce(t *testing.T, nodes [2]*testNode, req service.PurchaseRequest, times int) (won int) {
	t.Helper()
	results := make([]sale.Result, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			var err error
			if results[i], err = nodes[i%2].sales.Purchase(t.Context(), req); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	first := 0
	for _, r := range results {
		switch {
		case r.Code == sale.Accepted && r.Order.ID == req.Order:
			won++
			if !r.Replayed {
				first++
			}
		case r.Code != sale.Busy && r.Code != sale.Retry:
			t.Errorf("a request with the token was told %+v", r)
		}
	}
	if first > 1 {
		t.Errorf("%d requests with one token were each told that the order is theirs", first)
	}
	return won
}

// wantOneOrder expects that ledger, rows and shares know of the one order and of nothing else.
func (l *lab) wantOneOrder(t *testing.T, n *testNode, sku sale.SKU, req service.PurchaseRequest) {
	t.Helper()
	books, err := l.db.Books(t.Context(), sku.ID)
	if err != nil || books.Promised != 1 || books.LiveUnits != 1 || books.LiveOrders != 1 || books.OverLimit != 0 {
		t.Errorf("the books: %+v, %v; want one order of one unit", books, err)
	}
	order, err := l.db.Order(t.Context(), req.Buyer, req.Order)
	if err != nil || order.SKU != sku.ID || order.Quantity != 1 {
		t.Errorf("the order: %+v, %v", order, err)
	}
	listing, err := l.db.Listing(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	if listing.Ledger.Mode == sale.ModeMySQL {
		return // no share was asked
	}
	figures, err := n.skus.Shares(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	var left, pending int64
	for _, f := range figures {
		left, pending = left+f.Left, pending+f.Pending
	}
	if left != listing.Ledger.Available() || pending != 0 {
		t.Errorf("the shares hold %d units and %d undecided, the ledger has %d", left, pending, listing.Ledger.Available())
	}
}

// A winner who asks again with the token gets the order: when all is sold, when the sale is paused or over, and when the
// token has expired. Another buyer's expired token, of which no order came, buys nothing.
func TestATokenFindsItsOrderAgain(t *testing.T) {
	for way, begin := range tokenWays {
		t.Run(way, func(t *testing.T) {
			l := newLab(t)
			nodes, sku := twoNodes(t, l, 2, sale.SKU{Limit: 5, Slots: 1, TokenRequired: true})
			begin(t, l, nodes[0], sku)
			again := func(when string, req service.PurchaseRequest) {
				t.Helper()
				for i, n := range nodes {
					n.catalogue.Forget("")
					n.toggles.Load(t.Context())
					r, err := untilVerdict(t, n, req)
					if err != nil || r.Code != sale.Accepted || r.Order.ID != req.Order || !r.Replayed {
						t.Errorf("%s, node %d: %+v, %v", when, i, r, err)
					}
				}
			}
			again("", l.sold(t, nodes, tokenFor(t, sku.ID, "ada")))
			req := l.sold(t, nodes, tokenFor(t, sku.ID, "bob"))
			again("sold out", req)

			late := req
			late.Expired = true
			again("expired", late)
			never := tokenFor(t, sku.ID, "ada")
			never.Expired = true
			for i, n := range nodes {
				if r, err := n.sales.Purchase(t.Context(), never); !errors.Is(err, sale.ErrPurchaseTokenExpired) {
					t.Errorf("node %d: an expired token without an order: %+v, %v", i, r, err)
				}
			}
			late.Quantity = 2
			if r, err := nodes[1].sales.Purchase(t.Context(), late); !errors.Is(err, sale.ErrKeyReused) {
				t.Errorf("an expired token with another quantity: %+v, %v", r, err)
			}
			for what, move := range map[string]func(context.Context, string) (sale.Listing, error){
				"paused": nodes[0].skus.Pause, "closed": nodes[0].skus.Close,
			} {
				_, err := move(t.Context(), sku.ID)
				var state *sale.StateError
				if err != nil && !errors.As(err, &state) { // a closed SKU cannot be paused
					t.Fatal(err)
				}
				again(what, req)
				late.Quantity = 1
				again(what+" and expired", late)
			}
		})
	}
}

// sold buys with a token and waits until MySQL or the journal has the order.
func (l *lab) sold(t *testing.T, nodes [2]*testNode, req service.PurchaseRequest) service.PurchaseRequest {
	t.Helper()
	for _, n := range nodes {
		n.catalogue.Forget("")
		n.toggles.Load(t.Context())
	}
	r, err := untilVerdict(t, nodes[0], req)
	if err != nil || r.Code != sale.Accepted || r.Replayed || r.Order.ID != req.Order {
		t.Fatalf("the first purchase with a token: %+v, %v", r, err)
	}
	nodes[0].outcome()
	return req
}

// A SKU that calls for tokens sells to nobody without one, key or not, and nothing is taken for who comes without.
func TestATokenIsRequired(t *testing.T) {
	l := newLab(t)
	nodes, sku := twoNodes(t, l, 10, sale.SKU{Limit: 2, Slots: 2, TokenRequired: true})
	n := nodes[0]
	for _, key := range []string{"", "k"} {
		req := service.PurchaseRequest{SKU: sku.ID, Buyer: "ada", Key: key, Quantity: 1}
		if r, err := n.sales.Purchase(t.Context(), req); !errors.Is(err, sale.ErrPurchaseTokenRequired) {
			t.Errorf("key %q: %+v, %v", key, r, err)
		}
	}
	req := tokenFor(t, sku.ID, "ada")
	req.Key = "k"
	var input *sale.InputError
	if r, err := n.sales.Purchase(t.Context(), req); !errors.As(err, &input) || input.Field != "Idempotency-Key" {
		t.Errorf("a token and a key: %+v, %v", r, err)
	}
	figures, err := n.skus.Shares(t.Context(), sku.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.Left != f.Initial || f.Pending != 0 || f.Changes != figures[0].Changes {
			t.Errorf("share %v changed: %+v", f.Share, f)
		}
	}
	books, err := l.db.Books(t.Context(), sku.ID)
	if err != nil || books.Promised != 0 || books.LiveOrders != 0 {
		t.Errorf("the books: %+v, %v", books, err)
	}
}

// Tokens are issued while the SKU sells, and at no other time: nobody can collect them before the opening.
func TestTokensAreIssuedDuringTheSale(t *testing.T) {
	l := newLab(t)
	nodes, sku := twoNodes(t, l, 10, sale.SKU{
		Limit: 2, Slots: 1, OpensAt: l.clock.Now().Add(time.Hour), ClosesAt: l.clock.Now().Add(3 * time.Hour),
	})
	n := nodes[0]
	want := func(when string, reason sale.Reason) {
		t.Helper()
		n.catalogue.Forget("")
		n.toggles.Load(t.Context())
		r, may, err := n.sales.MayIssueToken(t.Context(), sku.ID)
		refused := r.Code == sale.NotOnSale && r.Reason == reason && r.SKU.ID == sku.ID
		if err != nil || may != (reason == "") || !may && !refused {
			t.Errorf("%s: %+v, %v, %v; want %q", when, r, may, err, reason)
		}
	}
	want("before the opening", sale.ReasonNotStarted)
	l.clock.advance(time.Hour - time.Millisecond)
	want("right before the opening", sale.ReasonNotStarted)
	l.clock.advance(time.Millisecond)
	want("at the opening", "")
	if _, err := n.skus.Pause(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	want("paused", sale.ReasonPaused)
	if _, err := n.skus.Open(t.Context(), sku.ID); err != nil {
		t.Fatal(err)
	}
	want("opened again", "")
	setToggle(t, n, sale.ToggleEntrance, sale.EntranceClosed)
	if r, may, err := n.sales.MayIssueToken(t.Context(), sku.ID); err != nil || may || r.Reason != sale.ReasonPaused {
		t.Errorf("with the entrance closed: %+v, %v, %v", r, may, err)
	}
	setToggle(t, n, sale.ToggleEntrance, sale.EntranceOpen)
	l.clock.advance(2 * time.Hour)
	want("at the end", sale.ReasonEnded)
	if _, _, err := n.sales.MayIssueToken(t.Context(), "none"); !errors.Is(err, sale.ErrNotFound) {
		t.Errorf("an unknown SKU: %v", err)
	}
	down := service.NewSales(l.config, service.SalesParts{Catalogue: broken{}, Now: l.clock.Now, Log: slog.New(slog.DiscardHandler)})
	if r, may, err := down.MayIssueToken(t.Context(), sku.ID); err != nil || may || r.Code != sale.Busy {
		t.Errorf("without a database: %+v, %v, %v", r, may, err)
	}
}

// Many buyers with a token each, all at once and each twice: as many orders as units, and no token makes two.
func TestTokensOfACrowd(t *testing.T) {
	const units, buyers = 20, 60
	l := newLab(t)
	nodes, sku := twoNodes(t, l, units, sale.SKU{Limit: 1, Slots: 2, ReservePct: 5, TokenRequired: true})
	requests := make([]service.PurchaseRequest, buyers)
	for i := range requests {
		requests[i] = tokenFor(t, sku.ID, fmt.Sprintf("buyer-%d", i))
	}
	var told [2 * buyers]sale.Result
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			var err error
			if told[i], err = nodes[i%2].sales.Purchase(t.Context(), requests[i/2]); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	for i, r := range told {
		order, err := l.db.Order(t.Context(), requests[i/2].Buyer, requests[i/2].Order)
		if r.Code == sale.Accepted && (err != nil || r.Order.ID != order.ID) {
			t.Errorf("request %d was told %s, the order is %s, %v", i, r.Order.ID, order.ID, err)
		}
	}
	won := int64(0)
	for _, req := range requests {
		order, err := l.db.Order(t.Context(), req.Buyer, req.Order)
		switch {
		case err == nil && order.Quantity == 1 && order.SKU == sku.ID:
			won++
		case !errors.Is(err, sale.ErrNotFound):
			t.Errorf("order of %s: %+v, %v", req.Buyer, order, err)
		}
	}
	books, err := l.db.Books(t.Context(), sku.ID)
	if err != nil || books.Promised != won || books.LiveOrders != won || won > units || won == 0 || books.OverLimit != 0 {
		t.Errorf("%d orders of tokens, books %+v, %v", won, books, err)
	}
}
