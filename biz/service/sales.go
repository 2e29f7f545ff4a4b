package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cespare/xxhash/v2"

	"stockade/biz/sale"
)

// Sales sells: the one way of a purchase through the node.
type Sales struct {
	cfg       Config
	catalogue Catalogue
	flags     Flags
	gate      Gate
	writer    *Writer
	orders    Orders
	recent    Recent
	watcher   *Watcher
	toggles   *Toggles
	healer    *Healer
	results   *Results
	faults    sale.Faults
	// backlogged tells that too many accepted orders wait for the broker.
	backlogged func() bool
	now        func() time.Time
	log        *slog.Logger
	trouble    *trouble

	running *inflights
	bypass  *pathRate     // of path mysql
	lookups chan struct{} // one token for each look-up that is under way
}

// SalesParts are what Sales is made of.
type SalesParts struct {
	Catalogue Catalogue
	Flags     Flags
	Gate      Gate
	Writer    *Writer
	Orders    Orders
	Recent    Recent
	Watcher   *Watcher
	Toggles   *Toggles    // nil: every toggle has its default
	Healer    *Healer     // nil: nobody is told what a purchase finds amiss
	Results   *Results    // nil: nobody counts
	Faults    sale.Faults // nil: none
	// Backlogged tells that too many accepted orders wait for the broker. Nil: never.
	Backlogged func() bool
	Now        func() time.Time
	Log        *slog.Logger
}

// NewSales returns the purchase use case.
func NewSales(cfg Config, p SalesParts) *Sales {
	if p.Backlogged == nil {
		p.Backlogged = func() bool { return false }
	}
	return &Sales{
		cfg: cfg, catalogue: p.Catalogue, flags: p.Flags, gate: p.Gate, writer: p.Writer, orders: p.Orders,
		recent: p.Recent, watcher: p.Watcher, toggles: p.Toggles, healer: p.Healer,
		results: p.Results, faults: faultsOr(p.Faults), backlogged: p.Backlogged, now: p.Now, log: p.Log,
		trouble: newTrouble(p.Log, p.Now), running: newInflights(),
		bypass: newPathRate(cfg.MysqlPathRate, p.Now), lookups: make(chan struct{}, cfg.LookupSlots),
	}
}

// purchase is one request on its way.
type purchase struct {
	PurchaseRequest
	id      sale.OrderID
	hash    uint64 // xxhash64 of the buyer
	listing sale.Listing
	// acknowledge: the answer comes after the admission, durability journal.
	acknowledge bool
}

// buyerHash is the hash that picks a buyer's home and stands for the buyer among the winners.
func buyerHash(buyer string) uint64 { return xxhash.Sum64String(buyer) }

// Purchase answers one request with a verdict. Errors: *sale.InputError; sale.ErrNotFound for an unknown SKU;
// sale.ErrKeyReused when the same key or token came with another quantity; sale.ErrPurchaseTokenRequired and
// sale.ErrPurchaseTokenExpired. Trouble with a dependency is not an error but BUSY.
func (s *Sales) Purchase(ctx context.Context, req PurchaseRequest) (sale.Result, error) {
	if err := req.Validate(); err != nil {
		return sale.Result{}, err
	}
	var r sale.Result
	var err error
	if s.toggles.EntranceClosed(req.SKU) {
		r, err = s.shut(ctx, req)
	} else {
		r, err = s.answer(ctx, req)
	}
	if err == nil {
		s.results.Count(r.Code)
	}
	return r, err
}

// answer refuses at the door what is hopeless, and sells to the others.
func (s *Sales) answer(ctx context.Context, req PurchaseRequest) (sale.Result, error) {
	deadline := s.deadline() // a listing that has to be read counts
	listing, err := s.catalogue.Listing(ctx, req.SKU)
	if errors.Is(err, sale.ErrNotFound) {
		return sale.Result{}, err
	}
	if err != nil {
		s.trouble.warn(ctx, "listing not readable", req.SKU, err)
		return busy(sale.ReasonDependency, sale.OrderID{}, false), nil
	}
	caller := purchase{PurchaseRequest: req, hash: buyerHash(req.Buyer), listing: listing}
	if caller.keyed() {
		if caller.id, err = req.orderID(); err != nil {
			return sale.Result{}, err
		}
	}
	if !caller.keyed() || !s.running.of(caller.id).has(caller.id) { // else it joins the one that runs
		if r, decided, err := s.door(&caller); decided || err != nil {
			return r, err
		}
	}
	p := new(purchase) // on the heap from here on; most never come this far
	*p = caller
	if !p.keyed() {
		if p.id, err = req.orderID(); err != nil {
			return sale.Result{}, err
		}
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		return s.sell(ctx, p)
	}
	return s.running.of(p.id).do(ctx, deadline, p.id, req.Quantity, func(ctx context.Context) (sale.Result, error) {
		return s.sell(ctx, p)
	})
}

// deadline is when a purchase that begins now has to be answered.
func (s *Sales) deadline() time.Time { return time.Now().Add(ms(s.cfg.PurchaseTimeoutMs)) }

// door decides what this node's memory can decide. It asks nobody, takes no lock and hardly allocates: in a sale nearly
// every request ends here.
func (s *Sales) door(p *purchase) (r sale.Result, decided bool, err error) {
	if p.Expired {
		return r, false, nil // an order may have come of it
	}
	if reason, on := p.listing.Window(s.now()); !on {
		return p.offSale(reason), !p.keyed() || p.neverSold(reason), nil
	}
	if p.listing.TokenRequired && !p.tokened() {
		return r, false, sale.ErrPurchaseTokenRequired
	}
	if p.Quantity > p.listing.Limit {
		return s.limitReached(p), true, nil
	}
	s.watcher.Touch(p.SKU)
	if !s.toggles.SoldoutFlag(p.SKU) {
		return r, false, nil
	}
	l := &p.listing
	switch s.flags.Standing(p.SKU, l.Ledger.LiveEpoch, l.Slots, p.hash, p.Quantity, p.keyed()) {
	case sale.FlaggedOut:
		return s.soldOut(p), true, nil
	case sale.FlaggedEmpty:
		s.healer.Ask(p.SKU, WhyTail, l.Ledger.LiveEpoch)
		return sale.Result{Code: sale.Retry, Reason: sale.ReasonElsewhere}, true, nil
	}
	return r, false, nil
}

// sell tries a purchase that the door let through.
func (s *Sales) sell(ctx context.Context, p *purchase) (sale.Result, error) {
	if p.Expired {
		return s.tooLate(ctx, p)
	}
	if reason, on := p.listing.Window(s.now()); !on {
		return s.offSale(ctx, p, reason)
	}
	if p.listing.TokenRequired && !p.tokened() { // the sale opened behind the door
		return sale.Result{}, sale.ErrPurchaseTokenRequired
	}
	p.acknowledge = s.toggles.Durability(p.SKU) == sale.DurabilityJournal
	if r, refused, err := s.heldOff(ctx, p); refused || err != nil {
		return r, err
	}
	return s.try(ctx, p)
}

// offSale is the refusal outside the window.
func (p *purchase) offSale(reason sale.Reason) sale.Result {
	return sale.Result{Code: sale.NotOnSale, Reason: reason, SKU: p.listing.SKU}
}

// neverSold tells whether no order of the SKU can exist.
func (p *purchase) neverSold(reason sale.Reason) bool {
	return reason == sale.ReasonNotStarted && p.listing.Ledger.Promised == 0
}

// offSale refuses outside the window, but a winner who asks again gets the order.
func (s *Sales) offSale(ctx context.Context, p *purchase, reason sale.Reason) (sale.Result, error) {
	if !p.keyed() || p.neverSold(reason) {
		return p.offSale(reason), nil
	}
	if r, answered, err := s.lookUp(ctx, p); answered || err != nil {
		return r, err
	}
	return p.offSale(reason), nil
}

// lookUp asks MySQL for the order of a keyed request, within a small budget. answered tells that the result is the
// answer: ACCEPTED when the order is there, BUSY when that cannot be known.
func (s *Sales) lookUp(ctx context.Context, p *purchase) (r sale.Result, answered bool, err error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	default:
		return busy(sale.ReasonQueueFull, p.id, true), true, nil
	}
	find := s.find
	if p.listing.Ledger.Mode == sale.ModeMySQL { // purchases must not need the gate there
		find = s.inMySQL
	}
	order, err := find(ctx, p.listing, p.Buyer, p.id)
	if errors.Is(err, sale.ErrNotFound) {
		return sale.Result{}, false, nil
	}
	if err != nil {
		s.trouble.warn(ctx, "order not readable", p.SKU, err)
		return busy(sale.ReasonDependency, p.id, true), true, nil
	}
	r, err = replay(p, order)
	return r, true, err
}

// replay answers a request whose order existed before.
func replay(p *purchase, order sale.Order) (sale.Result, error) {
	if order.SKU != p.SKU || order.Buyer != p.Buyer || order.Quantity != p.Quantity {
		return sale.Result{}, sale.ErrKeyReused
	}
	return sale.Result{Code: sale.Accepted, Order: order, Replayed: true}, nil
}

func (s *Sales) limitReached(p *purchase) sale.Result {
	return sale.Result{Code: sale.LimitReached, SKU: p.listing.SKU}
}

// soldOut is SOLD_OUT, with the reason when some units are left but fewer than asked for.
func (s *Sales) soldOut(p *purchase) sale.Result {
	r := sale.Result{Code: sale.SoldOut}
	if p.Quantity == 1 { // nothing is left, or it would not be sold out
		return r
	}
	if left, fresh := s.flags.Left(p.SKU, p.listing.Ledger.LiveEpoch, p.listing.Slots); fresh && left > 0 {
		r.Reason = sale.ReasonNotEnough
	}
	return r
}

// Order finds a buyer's order; sale.ErrNotFound, also for another buyer's, or sale.ErrUnavailable.
func (s *Sales) Order(ctx context.Context, buyer string, id sale.OrderID) (sale.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	order, err := s.orders.Order(ctx, buyer, id)
	return order, unavailable(err)
}

// OrdersOf lists a buyer's written orders, at most limit, in the order of their ids, after the given one;
// sale.ErrUnavailable.
func (s *Sales) OrdersOf(ctx context.Context, buyer string, after sale.OrderID, limit int) ([]sale.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, ms(s.cfg.ReadTimeoutMs))
	defer cancel()
	orders, err := s.orders.OrdersOf(ctx, buyer, after, limit)
	return orders, unavailable(err)
}
