package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"stockade/biz/sale"
)

var (
	errSameID = errors.New("another take of the same order was refused in the same group: ask again")
	errBadQty = fmt.Errorf("the quantity must be from 1 to %d", sale.MaxQuantity)
)

// member is one take of a group on its way to a decision.
type member struct {
	sale.Take
	decision sale.Decision
	// share and token are those of the row that the order has, once it is known to have one.
	share sale.Share
	token sale.Token
}

func (m *member) refuse(o sale.Outcome, err error) { m.decision = sale.Decision{Outcome: o, Err: err} }

// found answers with the order that is there already, whichever take it came from.
func (m *member) found(order sale.Order, share sale.Share, token sale.Token) {
	m.share, m.token = share, token
	m.decision = sale.Decision{Outcome: sale.FoundElse, Order: order}
	if m.Share == share && m.Token == token {
		m.decision.Outcome = sale.Found
	}
}

// group is everything that one call of Promise decides.
type group struct {
	members []member // one per take, in the caller's order
	first   []*member
	again   map[*member]*member // a further take of an order → the first one
}

// newGroup keeps the first take of each order, sorted by order id, so that groups that meet in the outbox's unique index
// take its entries in the same order.
func newGroup(takes []sale.Take) *group {
	g := &group{members: make([]member, len(takes)), again: map[*member]*member{}}
	firsts := make(map[sale.OrderID]*member, len(takes))
	for i, take := range takes {
		m := &g.members[i]
		m.Take = take
		switch first := firsts[take.Order]; {
		case take.Quantity < 1 || take.Quantity > sale.MaxQuantity:
			m.refuse(sale.Rejected, errBadQty)
		case first != nil:
			g.again[m] = first
		default:
			firsts[take.Order] = m
			g.first = append(g.first, m)
		}
	}
	slices.SortFunc(g.first, func(a, b *member) int { return bytes.Compare(a.Order[:], b.Order[:]) })
	return g
}

// decisions answers every take, in the caller's order.
func (g *group) decisions() []sale.Decision {
	for m, first := range g.again {
		switch first.decision.Outcome {
		case sale.Promised, sale.Found, sale.FoundElse:
			m.found(first.decision.Order, first.share, first.token)
		case sale.Undecided, sale.NotTaken:
			m.decision = first.decision
		default:
			// The refusal holds for this take too if it is the same one; a different one was not looked at.
			if m.Take == first.Take {
				m.decision = first.decision
			} else {
				m.refuse(sale.NotTaken, errSameID)
			}
		}
	}
	all := make([]sale.Decision, len(g.members))
	for i := range g.members {
		all[i] = g.members[i].decision
	}
	return all
}

// chunks cuts members into what one transaction takes.
func chunks(of []*member, maxBytes int) [][]*member {
	var all [][]*member
	start, size := 0, 0
	for i, m := range of {
		bytes := rowOverheadBytes + len(m.SKU) + len(m.Buyer)
		if i-start == maxRows || (i > start && size+bytes > maxBytes) {
			all = append(all, of[start:i:i])
			start, size = i, 0
		}
		size += bytes
	}
	if start < len(of) {
		all = append(all, of[start:])
	}
	return all
}

// portion is the part of a chunk that belongs to one SKU.
type portion struct {
	sku     string
	members []*member
	units   int64
	mixed   bool // the takes disagree about epoch or mode: at most one of them can be right
}

// portions splits a chunk by SKU, in SKU order: the order in which ledger rows are locked.
func portions(of []*member) []portion {
	at := map[string]int{}
	var all []portion
	for _, m := range of {
		i, known := at[m.SKU]
		if !known {
			i = len(all)
			at[m.SKU] = i
			all = append(all, portion{sku: m.SKU})
		}
		p := &all[i]
		p.members = append(p.members, m)
		p.units += m.Quantity
		p.mixed = p.mixed || m.Epoch != p.members[0].Epoch || m.Mode != p.members[0].Mode
	}
	slices.SortFunc(all, func(a, b portion) int { return cmp.Compare(a.sku, b.sku) })
	return all
}

// buyers lists the distinct buyers of the members with the limit that holds for each: the smallest, should takes
// disagree.
func buyers(of []*member) (names []string, limits map[string]int64) {
	limits = make(map[string]int64, len(of))
	for _, m := range of {
		limit, known := limits[m.Buyer]
		if !known {
			names = append(names, m.Buyer)
			limit = m.Limit
		}
		limits[m.Buyer] = min(limit, m.Limit)
	}
	return names, limits
}

func refuseAll(of []*member, o sale.Outcome, err error) {
	for _, m := range of {
		m.refuse(o, err)
	}
}

func orderIDs(of []*member) []sale.OrderID {
	ids := make([]sale.OrderID, len(of))
	for i, m := range of {
		ids[i] = m.Order
	}
	return ids
}
