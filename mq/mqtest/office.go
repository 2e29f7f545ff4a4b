package mqtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// Office buries dead letters and expires orders in memory.
type Office struct {
	mu      sync.Mutex
	down    bool
	calls   int // while down
	letters map[string]sale.DeadLetter
	buried  int // repetitions counted
	changed []string
	expired map[sale.OrderID][]time.Time
	batches []int // orders in each call of Expire
}

// The interfaces that the consumers need.
var (
	_ mq.Burier  = (*Office)(nil)
	_ mq.Expirer = (*Office)(nil)
)

// NewOffice returns an office that works.
func NewOffice() *Office {
	return &Office{letters: map[string]sale.DeadLetter{}, expired: map[sale.OrderID][]time.Time{}}
}

// SetDown makes both methods fail with ErrDown, or work again.
func (o *Office) SetDown(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

// Bury implements mq.Burier.
func (o *Office) Bury(_ context.Context, d sale.DeadLetter) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		o.calls++
		return ErrDown
	}
	o.buried++
	if old, again := o.letters[d.MessageID]; again && fmt.Sprint(readable(old)) != fmt.Sprint(readable(d)) {
		o.changed = append(o.changed, fmt.Sprintf("%+v came again as %+v", old, d))
	}
	o.letters[d.MessageID] = d
	return nil
}

// readable is a letter without its pointer.
func readable(d sale.DeadLetter) (sale.DeadLetter, sale.OrderID) {
	var id sale.OrderID
	if d.Order != nil {
		id = *d.Order
	}
	d.Order = nil
	return d, id
}

// Expire implements mq.Expirer.
func (o *Office) Expire(_ context.Context, ids []sale.OrderID) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		o.calls++
		return ErrDown
	}
	o.batches = append(o.batches, len(ids))
	for _, id := range ids {
		o.expired[id] = append(o.expired[id], time.Now())
	}
	return nil
}

// Refusals is how many calls failed.
func (o *Office) Refusals() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// Letters lists each letter once, by its message id.
func (o *Office) Letters() map[string]sale.DeadLetter {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.letters)
}

// HasLetter tells whether an order has a letter.
func (o *Office) HasLetter(id sale.OrderID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.letters[id.String()]
	return ok
}

// Buried is how many letters were buried, repetitions counted.
func (o *Office) Buried() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buried
}

// Changed describes letters that came again with the same id and different.
func (o *Office) Changed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.changed)
}

// Expired is how many orders were expired.
func (o *Office) Expired() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.expired)
}

// ExpiredAt lists when an order was expired.
func (o *Office) ExpiredAt(id sale.OrderID) []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.expired[id])
}

// Batches lists how many orders came in each call of Expire.
func (o *Office) Batches() []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.batches)
}
