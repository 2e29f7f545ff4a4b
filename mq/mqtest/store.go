package mqtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// ErrDown is what a Store answers while it is told to be down.
var ErrDown = errors.New("the store is down")

// ErrPoison is what a Store says of an order that it was told to refuse.
var ErrPoison = errors.New("this order can never be written")

// State is where an outbox row stands.
type State string

// The states of an outbox row.
const (
	New  State = "NEW"
	Sent State = "SENT"
	Done State = "DONE"
)

type row struct {
	order            sale.Order
	state            State
	created, claimed time.Time
	sent             time.Time
	renewals         int
}

// Store keeps outbox rows, notices and written orders in memory, with the claims of the real one.
type Store struct {
	mu       sync.Mutex
	rows     map[sale.OrderID]*row
	order    []sale.OrderID // of rows, oldest first
	written  map[sale.OrderID]sale.Order
	inserts  int                  // orders given to InsertOrders, repetitions counted
	foreign  int                  // ids given to MarkSent that have no row
	poison   map[sale.OrderID]int // refusals that are left
	tries    map[sale.OrderID][]Try
	dead     func(sale.OrderID) bool // has a dead letter
	down     bool
	notices  []sale.Notice
	claimedN map[int64]time.Time
	lastSeq  int64
}

// The interfaces that the relay and the consumers need.
var (
	_ mq.Outbox = (*Store)(nil)
	_ mq.Orders = (*Store)(nil)
)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		rows:     map[sale.OrderID]*row{},
		written:  map[sale.OrderID]sale.Order{},
		poison:   map[sale.OrderID]int{},
		tries:    map[sale.OrderID][]Try{},
		dead:     func(sale.OrderID) bool { return false },
		claimedN: map[int64]time.Time{},
	}
}

// Put commits NEW rows.
func (s *Store) Put(orders []sale.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		s.rows[o.ID] = &row{order: o, state: New, created: time.Now()}
		s.order = append(s.order, o.ID)
	}
}

// PutNotice adds a notice; payment may be empty.
func (s *Store) PutNotice(topic, payment string, orders []sale.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSeq++
	s.notices = append(s.notices, sale.Notice{Seq: s.lastSeq, Topic: topic, Orders: orders, Payment: payment})
}

// Dead tells RecheckSent which orders have a dead letter: their rows are DONE.
func (s *Store) Dead(dead func(sale.OrderID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = dead
}

// SetDown makes InsertOrders fail with ErrDown, or work again.
func (s *Store) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// ForEver is more refusals than any test sees.
const ForEver = 1 << 30

// Refuse makes InsertOrders refuse these orders that many times; 0 makes it take them again.
func (s *Store) Refuse(times int, orders ...sale.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		s.poison[o.ID] = times
	}
}

// Try is one time that InsertOrders refused an order.
type Try struct {
	At      time.Time
	Written int // orders written by then
}

// Tries lists when an order was refused.
func (s *Store) Tries(id sale.OrderID) []Try {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tries[id])
}

// InsertOrders implements mq.Orders.
func (s *Store) InsertOrders(ctx context.Context, orders []sale.Order) ([]error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inserts += len(orders)
	if s.down {
		return nil, ErrDown
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	refused := make([]error, len(orders))
	for i, o := range orders {
		if s.poison[o.ID] > 0 {
			s.poison[o.ID]--
			refused[i] = ErrPoison
			continue
		}
		if old, again := s.written[o.ID]; again && old != o {
			return nil, fmt.Errorf("order %s came again as another one", o.ID)
		}
		s.written[o.ID] = o
	}
	for i, err := range refused {
		if err != nil {
			id := orders[i].ID
			s.tries[id] = append(s.tries[id], Try{time.Now(), len(s.written)})
		}
	}
	return refused, nil
}

// MarkSent implements mq.Outbox.
func (s *Store) MarkSent(_ context.Context, ids []sale.OrderID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		r := s.rows[id]
		if r == nil {
			s.foreign++
			continue
		}
		if r.state == New {
			r.state, r.sent = Sent, time.Now()
		}
	}
	return nil
}

// ClaimNew implements mq.Outbox.
func (s *Store) ClaimNew(_ context.Context, olderThan time.Duration, limit int) ([]sale.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var out []sale.Order
	for _, id := range s.order {
		r := s.rows[id]
		if len(out) == limit {
			break
		}
		if r.state == New && now.Sub(r.created) >= olderThan && now.Sub(r.claimed) >= olderThan {
			r.claimed = now
			out = append(out, r.order)
		}
	}
	return out, nil
}

// RecheckSent implements mq.Outbox.
func (s *Store) RecheckSent(_ context.Context, olderThan time.Duration, limit int) (done, renewed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		r := s.rows[id]
		if done+renewed == limit {
			break
		}
		if r.state != Sent || time.Since(r.sent) < olderThan<<min(r.renewals, 6) {
			continue
		}
		if _, ok := s.written[id]; ok || s.dead(id) {
			r.state = Done
			done++
		} else {
			r.state, r.claimed = New, time.Time{}
			r.renewals++
			renewed++
		}
	}
	return done, renewed, nil
}

// ClaimNotices implements mq.Outbox.
func (s *Store) ClaimNotices(_ context.Context, olderThan time.Duration, limit int) ([]sale.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sale.Notice
	for _, n := range s.notices {
		if len(out) < limit && time.Since(s.claimedN[n.Seq]) >= olderThan {
			s.claimedN[n.Seq] = time.Now()
			out = append(out, n)
		}
	}
	return out, nil
}

// DeleteNotices implements mq.Outbox.
func (s *Store) DeleteNotices(_ context.Context, seqs []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = slices.DeleteFunc(s.notices, func(n sale.Notice) bool { return slices.Contains(seqs, n.Seq) })
	return nil
}

// Written is how many orders have been written.
func (s *Store) Written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.written)
}

// Inserts is how many orders were given to InsertOrders, repetitions and failures counted.
func (s *Store) Inserts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inserts
}

// In counts the rows in a state.
func (s *Store) In(state State) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.state == state {
			n++
		}
	}
	return n
}

// Notices is how many notices are left.
func (s *Store) Notices() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.notices)
}

// Check says what is wrong with the store after everything has arrived: each of these orders written as it was put, and
// nothing else, and no mark for an unknown id.
func (s *Store) Check(orders []sale.Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.written) != len(orders) {
		return fmt.Errorf("%d orders written, %d expected", len(s.written), len(orders))
	}
	for _, o := range orders {
		if s.written[o.ID] != o {
			return fmt.Errorf("order %s was written as %+v, put as %+v", o.ID, s.written[o.ID], o)
		}
	}
	if s.foreign > 0 {
		return fmt.Errorf("%d unknown ids marked SENT", s.foreign)
	}
	return nil
}
