//go:build services

package e2e_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

// settleBound is how long orders and undecided takes may need after the last answer: the journal sweeper looks at what
// is older than 5 s, once a second.
const settleBound = 10 * time.Second

// told is everything that buyers heard.
type told struct {
	mu      sync.Mutex
	won     map[string]request        // by order id
	unknown map[string]request        // by order id: "an order may turn out to exist"
	ids     map[request]string        // of the winners
	codes   map[string]map[string]int // answers by SKU and code; BUSY and RETRY also by reason and outcome
	faults  []string                  // answers that contradict each other
	lastWin time.Time
}

func newTold() told {
	return told{
		won: map[string]request{}, unknown: map[string]request{}, ids: map[request]string{},
		codes: map[string]map[string]int{},
	}
}

func (l *told) add(r request, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.codes[r.sku] == nil {
		l.codes[r.sku] = map[string]int{}
	}
	l.codes[r.sku][a.Code]++
	if !a.verdict() {
		l.codes[r.sku][strings.TrimSpace(a.Code+" "+a.Reason+" "+a.Outcome)]++
	}
	switch {
	case a.Code == accepted:
		if other, ok := l.won[a.OrderID]; ok && other != r {
			l.faults = append(l.faults, fmt.Sprintf("%+v and %+v were both told order %s", r, other, a.OrderID))
		}
		if id, ok := l.ids[r]; ok && id != a.OrderID && r.key != "" {
			l.faults = append(l.faults, fmt.Sprintf("%+v was told orders %s and %s", r, id, a.OrderID))
		}
		l.won[a.OrderID], l.ids[r] = r, a.OrderID
		l.lastWin = time.Now()
	case a.Outcome == "unknown":
		l.unknown[a.OrderID] = r
	}
}

// winners are the requests that were told ACCEPTED, with their order ids.
func (l *told) winners(sku string) map[string]request {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[string]request{}
	for id, r := range l.won {
		if r.sku == sku {
			of[id] = r
		}
	}
	return of
}

func (l *told) count(sku, code string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.codes[sku][code]
}

// create makes a SKU with the command line and returns its id. Flags follow those of `stockade sku create`.
func (p *pair) create(total, limit int64, flags ...string) string {
	p.t.Helper()
	sku := fmt.Sprintf("%s.%d", p.t.Name(), shop.skus.Add(1))
	args := []string{
		"sku", "create", sku,
		"--total", strconv.FormatInt(total, 10), "--limit", strconv.FormatInt(limit, 10),
	}
	p.survivor().CLI(append(args, flags...)...)
	return sku
}

// adjust adds units with the command line.
func (p *pair) adjust(sku string, add int64) {
	p.t.Helper()
	p.survivor().CLI("sku", "adjust", sku, fmt.Sprintf("%+d", add))
}

func (p *pair) listing(sku string) (l handler.ListingJSON) {
	p.t.Helper()
	if err := p.survivor().Read("/admin/v1/skus/"+sku, &l); err != nil {
		p.t.Fatal(err)
	}
	return l
}

// shares reads what the shares hold: the slots in order, the reserve last.
func (p *pair) shares(sku string) []handler.ShareJSON {
	p.t.Helper()
	var s handler.SharesJSON
	if err := p.survivor().Read("/admin/v1/skus/"+sku+"/shares", &s); err != nil {
		p.t.Fatal(err)
	}
	return s.Shares
}

func sum(shares []handler.ShareJSON) (left, pending int64) {
	for _, s := range shares {
		left += s.Left
		pending += s.Pending
	}
	return left, pending
}

// books is what the operator's command says.
func (p *pair) books(sku string) (b sale.Books) {
	p.t.Helper()
	out := p.survivor().CLI("sku", "show", sku, "--books")
	if err := json.Unmarshal(out, &b); err != nil {
		p.t.Fatalf("books: %v in %s", err, out)
	}
	return b
}

// settle waits until every promise is an order and every take is decided.
func (p *pair) settle(sku string) time.Duration {
	p.t.Helper()
	begun := time.Now()
	for {
		var b sale.Books
		err := p.survivor().Read("/admin/v1/skus/"+sku+"/books", &b)
		left, pending := sum(p.shares(sku))
		if err == nil && b.Missing == 0 && pending == 0 && b.Promised == b.LiveUnits && left == b.Total-b.Promised {
			return time.Since(begun)
		}
		if time.Since(begun) > settleBound {
			p.t.Fatalf("%s not settled within %v: books %+v (%v), left %d, pending %d", sku, settleBound, b, err, left, pending)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// row is an order as the database has it.
type row struct {
	buyer    string
	quantity int64
}

// rows reads all ids of a table.
func (p *pair) rows(query, sku string) map[string]row {
	p.t.Helper()
	found, err := shop.db.Query(query, sku)
	if err != nil {
		p.t.Fatal(err)
	}
	defer found.Close()
	all := map[string]row{}
	for found.Next() {
		var raw []byte
		var r row
		if err := found.Scan(&raw, &r.buyer, &r.quantity); err != nil {
			p.t.Fatal(err)
		}
		id := sale.OrderID(raw).String()
		if _, twice := all[id]; twice {
			p.t.Errorf("%s: order %s has two rows", sku, id)
		}
		all[id] = r
	}
	if err := found.Err(); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// audit waits until a SKU has settled and compares what buyers were told with what is true. It returns the units sold.
func (p *pair) audit(sku string) int64 {
	p.t.Helper()
	p.settle(sku)
	l, b := p.listing(sku), p.books(sku)
	if b.Promised != b.LiveUnits || b.Promised > b.Total || b.Missing != 0 || b.Strangers != 0 || b.OverLimit != 0 ||
		b.Orders != b.LiveOrders || l.Ledger.Promised != b.Promised {
		p.t.Errorf("%s: the books do not agree: %+v, ledger %+v", sku, b, l.Ledger)
	}
	orders := p.rows("SELECT id, buyer, qty FROM orders WHERE sku = ?", sku)
	outbox := p.rows("SELECT id, buyer, qty FROM outbox WHERE sku = ? AND closed_at IS NULL", sku)
	var sold int64
	held := map[string]int64{}
	for id, o := range outbox {
		sold += o.quantity
		held[o.buyer] += o.quantity
		if orders[id] != o {
			p.t.Errorf("%s: outbox row %s %+v became order %+v", sku, id, o, orders[id])
		}
	}
	if sold > l.Ledger.Total || sold != b.Promised || len(orders) != len(outbox) {
		p.t.Errorf("%s: %d units in %d outbox rows and %d orders, of %d; the ledger says %d", sku, sold, len(outbox), len(orders),
			l.Ledger.Total, b.Promised)
	}
	for buyer, units := range held {
		if units > l.Limit {
			p.t.Errorf("%s: buyer %s holds %d units, the limit is %d", sku, buyer, units, l.Limit)
		}
	}
	p.compare(sku, orders)
	for _, s := range p.shares(sku) {
		if s.Gone || s.Sealed || s.Left < 0 || s.Pending != 0 || s.Epoch != l.Ledger.LiveEpoch {
			p.t.Errorf("%s: share %+v under epoch %d", sku, s, l.Ledger.LiveEpoch)
		}
	}
	return sold
}

// compare holds orders against answers: nobody was told of an order that is not there, and no order is there that
// nobody was told of.
func (p *pair) compare(sku string, orders map[string]row) {
	p.t.Helper()
	winners := p.told.winners(sku)
	p.told.mu.Lock()
	defer p.told.mu.Unlock()
	for _, fault := range p.told.faults {
		p.t.Error(fault)
	}
	for id, r := range winners {
		if o, ok := orders[id]; !ok || o.buyer != r.buyer || o.quantity != r.quantity {
			p.t.Errorf("%s: %+v was told ACCEPTED %s, the order is %+v", sku, r, id, o)
		}
	}
	for id, o := range orders {
		_, won := winners[id]
		_, unknown := p.told.unknown[id]
		if !won && !unknown {
			p.t.Errorf("%s: order %s %+v was neither told ACCEPTED nor unknown", sku, id, o)
		}
	}
}
